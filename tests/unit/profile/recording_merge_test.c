// Recordings that are kept small: whatever was merged, and however often, all sums of all stacks
// and the peak are those of the history.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "any.h"
#include "unit.h"

#define LIVE_MAX 100
#define THREADS  3
#define STACKS   30

struct history {
    struct heap_sink sinks[2];
    struct heap_block live[LIVE_MAX];
    size_t count;
    uint64_t number, time;
    uint32_t stacks; // mentioned
    bool described[STACKS + 1];
};

// Described now, later, or before it is used.
static uint32_t some_stack(struct history *history) {
    uint32_t stack = (uint32_t)any(STACKS + 1);
    if (stack > history->stacks)
        stack = ++history->stacks;
    uint32_t other = any(4) ? stack : (uint32_t)any(history->stacks + 1);
    if (other && !history->described[other]) {
        uint64_t pcs[3] = {0x400000 + other, 0x400100 + any(3), 0x400200};
        for (int i = 0; i < 2; i++)
            history->sinks[i].stack(history->sinks[i].context, other, pcs, 3, false);
        history->described[other] = true;
    }
    return stack;
}

static void tell(struct history *history, const struct heap_event *event) {
    for (int i = 0; i < 2; i++)
        history->sinks[i].event(history->sinks[i].context, event);
}

static void allocate(struct history *history, uint32_t thread) {
    struct heap_block *block = &history->live[history->count++];
    // Some stacks have very many sizes.
    uint32_t stack = some_stack(history);
    uint64_t size = stack % 3 ? 16 * any(4) : any(100000);
    *block = (struct heap_block){.number = ++history->number,
                                 .size = size,
                                 .capacity = heap_rounded(size),
                                 .time = history->time,
                                 .stack = stack,
                                 .thread = thread};
    tell(history,
         &(struct heap_event){
             .kind = HEAP_ALLOCATED, .thread = thread, .time = history->time, .block = block});
}

static void one_event(struct history *history) {
    uint32_t thread = 1 + (uint32_t)any(THREADS);
    history->time += any(300000);
    uint64_t choice = any(10);
    if (history->count == 0 || (choice < 5 && history->count < LIVE_MAX)) {
        allocate(history, thread);
        return;
    }
    // Often the latest: then it may be temporary.
    size_t at = any(2) ? history->count - 1 : any(history->count);
    struct heap_event event = {
        .kind = HEAP_FREED, .thread = thread, .time = history->time, .before = history->live[at]};
    if (any(3))
        event.thread = event.before.thread;
    if (choice < 8) {
        history->live[at] = history->live[--history->count];
    } else {
        event.kind = HEAP_RESIZED;
        history->live[at].size = any(9000);
        history->live[at].capacity = heap_resized(event.before.capacity, history->live[at].size);
        history->live[at].stack = some_stack(history);
        event.block = &history->live[at];
    }
    tell(history, &event);
}

static void each(void *context, void (*replace)(void *context, struct heap_block *block),
                 void *replace_context) {
    struct history *history = context;
    for (size_t i = 0; i < history->count; i++)
        replace(replace_context, &history->live[i]);
}

static void some_sample(struct history *history) {
    static struct heap_sample sample;
    sample.time = history->time;
    sample.resident = 4096 * any(1000);
    sample.minor_faults = history->time / 1000;
    for (int i = 0; i < 2; i++)
        history->sinks[i].sample(history->sinks[i].context, &sample);
}

static void check_same(const struct summary *got, const struct summary *wanted) {
    CHECK_EQ(got->total.peak_bytes, wanted->total.peak_bytes);
    CHECK_EQ(got->total.peak, wanted->total.peak);
    CHECK_EQ(got->total.allocated, wanted->total.allocated);
    CHECK_EQ(got->total.allocated_bytes, wanted->total.allocated_bytes);
    CHECK_EQ(got->total.temporary, wanted->total.temporary);
    CHECK_EQ(got->total.live_bytes, wanted->total.live_bytes);
    CHECK_EQ(got->freed, wanted->freed);
    CHECK_EQ(got->resized, wanted->resized);
    CHECK_EQ(got->resident.peak_bytes, wanted->resident.peak_bytes);
    CHECK_EQ(got->resident.last.minor_faults, wanted->resident.last.minor_faults);
    for (uint32_t i = 0; i <= STACKS; i++) {
        struct summary_site ours = i < got->site_count ? got->sites[i] : (struct summary_site){0};
        struct summary_site theirs =
            i < wanted->site_count ? wanted->sites[i] : (struct summary_site){0};
        CHECK_EQ(ours.allocated, theirs.allocated);
        CHECK_EQ(ours.allocated_bytes, theirs.allocated_bytes);
        CHECK_EQ(ours.temporary, theirs.temporary);
        CHECK_EQ(ours.live, theirs.live);
        CHECK_EQ(ours.live_bytes, theirs.live_bytes);
        CHECK_EQ(ours.peak, theirs.peak);
        CHECK_EQ(ours.peak_bytes, theirs.peak_bytes);
        CHECK_EQ(stacks_get(&got->stacks, i)->count, stacks_get(&wanted->stacks, i)->count);
    }
}

// A history of so many events, merged every so many.
static void merge_and_compare(uint64_t seed, size_t events, size_t often, uint64_t most) {
    any_state = seed;
    struct history history = {0};
    struct summary wanted = {0}, got = {0};
    struct recording_process process = {.pid = 42, .started = 1, .command = "a command"};
    int fd = memfd_create("recording", 0);
    struct recording_writer *writer = recording_create(dup(fd), &process);
    recording_set_most(writer, most);
    recording_sink(writer, &history.sinks[0]);
    summary_sink(&wanted, &history.sinks[1]);
    for (uint32_t thread = 1; thread <= THREADS; thread++)
        for (int i = 0; i < 2; i++)
            history.sinks[i].thread(history.sinks[i].context, thread, 1000 + (int)thread);
    for (size_t i = 1; i <= events; i++) {
        one_event(&history);
        if (any(50) == 0)
            some_sample(&history);
        if (i % often)
            continue;
        int next = memfd_create("recording", 0);
        recording_flush(writer);
        CHECK(recording_merge(writer, fd, dup(next), &(struct recording_places){&history, each}));
        close(fd);
        fd = next;
    }
    wanted.time = history.time;
    history.sinks[1].end(&wanted, history.time);
    CHECK_EQ(recording_close(writer, &(struct recording_end){.time = history.time}), 0);
    struct heap_sink sink;
    struct recording_info info;
    summary_sink(&got, &sink);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(recording_read(fd, &sink, 1, &info));
    if (info.damage)
        NOTE("%s", info.damage);
    CHECK(!info.damage && info.is_complete);
    CHECK(info.merges.until > 0 && info.merges.steps > 0);
    summary_check(&got);
    check_same(&got, &wanted);
    recording_info_free(&info);
    summary_free(&got);
    summary_free(&wanted);
    close(fd);
}

TEST(one_merge_keeps_all_sums) {
    for (uint64_t seed = 1; seed <= 25; seed++)
        merge_and_compare(seed, 400 + 20 * seed, 300, 1 << 20);
}

TEST(merges_of_merges_keep_all_sums) {
    for (uint64_t seed = 100; seed <= 108; seed++)
        merge_and_compare(seed, 6000, 350, 1 << 20);
}

TEST(steps_become_longer_where_there_is_little_room) {
    for (uint64_t seed = 200; seed <= 203; seed++)
        merge_and_compare(seed, 20000, 2500, 16384);
}

UNIT_MAIN()
