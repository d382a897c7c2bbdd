// The index of a recording: what it gives is what reading all events gives; one that is damaged, or
// of something else, is not used. Everything is the same in every run.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "profile/recording/index.h"
#include "any.h"
#include "unit.h"

#define EVENTS  1300000
#define LIVE    3000
#define THREADS 9
#define SITES   40

// ---- a history ----

struct history {
    struct heap_sink sinks[2];
    struct heap_block live[LIVE];
    size_t count;
    uint64_t number, time, regions;
};

#define TELL(history, what, ...)                                                                   \
    for (int i_ = 0; i_ < 2; i_++)                                                                 \
        if ((history)->sinks[i_].what)                                                             \
    (history)->sinks[i_].what((history)->sinks[i_].context, __VA_ARGS__)

static void one_event(struct history *history) {
    struct heap_event event = {.time = history->time, .thread = 1 + (uint32_t)any(THREADS)};
    size_t at = history->count ? (any(3) ? history->count - 1 : any(history->count)) : 0;
    uint64_t size = any(2000);
    if (!history->count || (history->count < LIVE && any(2))) {
        event.kind = HEAP_ALLOCATED;
        event.block = &history->live[history->count++];
        *event.block = (struct heap_block){.number = ++history->number,
                                           .size = size,
                                           .capacity = heap_rounded(size),
                                           .time = history->time,
                                           .stack = (uint32_t)any(SITES),
                                           .thread = event.thread};
    } else if (any(6)) {
        event.kind = HEAP_FREED;
        event.before = history->live[at];
        history->live[at] = history->live[--history->count];
    } else {
        event.kind = HEAP_RESIZED;
        event.before = history->live[at];
        event.block = &history->live[at];
        event.block->size = size;
        event.block->stack = (uint32_t)any(SITES);
        event.block->capacity = heap_resized(event.before.capacity, size);
    }
    TELL(history, event, &event);
}

static void something_else(struct history *history) {
    struct heap_mark mark = {.kind = (enum heap_mark_kind)any(HEAP_MARK_KINDS),
                             .thread = 1 + (uint32_t)any(THREADS),
                             .time = history->time,
                             .name = any(2) ? "one" : "another"};
    struct heap_sample sample = {.time = history->time,
                                 .resident = RECORDING_PAGE * any(100000),
                                 .minor_faults = history->number};
    if (any(2)) {
        TELL(history, mark, &mark);
    } else if (any(2)) {
        TELL(history, sample, &sample);
    } else {
        struct heap_region region = {.is_mapped = true,
                                     .number = ++history->regions,
                                     .bytes = 4096 * (1 + any(50)),
                                     .time = history->time,
                                     .thread = 1,
                                     .stack = (uint32_t)any(SITES)};
        TELL(history, region, &region);
    }
}

// Records that many events; the summary is of what was told, and has to be freed.
static int record(size_t events, struct summary *summary) {
    static struct history history;
    int fd = memfd_create("recording", 0);
    struct recording_process process = {.pid = 42, .started = 17, .command = "a command"};
    struct recording_writer *writer = recording_create(dup(fd), &process);
    history = (struct history){0};
    *summary = (struct summary){0};
    recording_sink(writer, &history.sinks[0]);
    summary_sink(summary, &history.sinks[1]);
    for (uint32_t thread = 1; thread <= THREADS; thread++)
        TELL(&history, thread, thread, 100 + (int)thread);
    for (uint32_t stack = 1; stack < SITES; stack++) {
        bool truncated = any(5) == 0;
        TELL(&history, stack, stack, (uint64_t[]){stack * 16, 4096}, 2, truncated);
    }
    for (size_t i = 0; i < events; i++) {
        history.time += any(50) ? 0 : any(5000000);
        one_event(&history);
        if (any(5000) == 0)
            something_else(&history);
    }
    history.time += 1234567;
    TELL(&history, end, history.time);
    recording_set_sums(writer, summary);
    CHECK_EQ(recording_close(writer, &(struct recording_end){.time = history.time}), 0);
    return fd;
}

// ---- reading it ----

struct result {
    struct summary summary;
    struct timeline timeline;
    struct recording_info info;
};

static void start(struct result *result, struct heap_sink *sinks, int fd) {
    *result = (struct result){0};
    summary_sink(&result->summary, &sinks[0]);
    timeline_sink(&result->timeline, &sinks[1]);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
}

static void read_events(int fd, struct result *result) {
    struct heap_sink sinks[2];
    start(result, sinks, fd);
    CHECK(recording_read(fd, sinks, 2, &result->info));
}

static bool read_sums(int fd, struct result *result) {
    struct heap_sink sinks[2];
    start(result, sinks, fd);
    return recording_read_sums(fd, sinks, 2, &result->summary, &result->timeline, &result->info);
}

static void free_result(struct result *result) {
    summary_free(&result->summary);
    recording_info_free(&result->info);
}

static void check_sites(const struct summary *a, const struct summary *b) {
    for (size_t i = 0; i < SITES; i++)
        CHECK(memcmp(&a->sites[i], &b->sites[i], offsetof(struct summary_site, peak_seen)) == 0);
    CHECK(memcmp(&a->total, &b->total, offsetof(struct summary_site, peak_seen)) == 0);
}

static void check_marks(const struct marks *a, const struct marks *b) {
    CHECK_EQ(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        CHECK_EQ(a->points[i].time, b->points[i].time);
        CHECK_EQ(a->points[i].live_bytes, b->points[i].live_bytes);
        CHECK_EQ(a->points[i].live_blocks, b->points[i].live_blocks);
        CHECK_EQ(a->points[i].allocated, b->points[i].allocated);
    }
    CHECK_EQ(a->scope_count, b->scope_count);
    for (size_t i = 0; i < a->scope_count; i++) {
        CHECK_EQ(a->scopes[i].time, b->scopes[i].time);
        CHECK_EQ(a->scopes[i].most, b->scopes[i].most);
        CHECK(memcmp(&a->scopes[i].count, &b->scopes[i].count, sizeof a->scopes[i].count) == 0);
    }
}

static void check_same(const struct result *a, const struct result *b) {
    check_sites(&a->summary, &b->summary);
    check_marks(&a->summary.marks, &b->summary.marks);
    CHECK_EQ(a->summary.freed, b->summary.freed);
    CHECK_EQ(a->summary.resized, b->summary.resized);
    CHECK_EQ(a->summary.truncated, b->summary.truncated);
    CHECK_EQ(a->summary.time, b->summary.time);
    CHECK_EQ(a->summary.peak_time, b->summary.peak_time);
    CHECK_EQ(a->summary.threads, b->summary.threads);
    CHECK(memcmp(&a->summary.regions, &b->summary.regions, sizeof a->summary.regions) == 0);
    CHECK(memcmp(&a->summary.resident, &b->summary.resident, sizeof a->summary.resident) == 0);
    CHECK_EQ(a->timeline.length, b->timeline.length);
    CHECK_EQ(a->timeline.count, b->timeline.count);
    CHECK(memcmp(a->timeline.steps, b->timeline.steps,
                 a->timeline.count * sizeof *a->timeline.steps) == 0);
    CHECK_EQ(a->info.allocated, b->info.allocated);
    CHECK_EQ(a->info.freed, b->info.freed);
    CHECK_EQ(a->info.resized, b->info.resized);
    CHECK_EQ(a->info.end.time, b->info.end.time);
}

// Where the index begins.
static uint64_t index_of(int fd) {
    uint64_t position;
    CHECK(pread(fd, &position, sizeof position, lseek(fd, 0, SEEK_END) - 16) == sizeof position);
    return position;
}

// ---- tests ----

TEST(an_index_gives_what_events_give) {
    struct result events, sums;
    struct summary told;
    int fd = record(EVENTS, &told);
    read_events(fd, &events);
    CHECK(!events.info.damage && events.info.is_complete);
    CHECK(read_sums(fd, &sums));
    check_same(&events, &sums);
    check_sites(&told, &sums.summary);
    summary_check(&sums.summary);
    CHECK(events.summary.marks.count > 10 && events.summary.marks.scope_count == 2);
    CHECK(events.summary.regions.count > 10 && events.summary.resident.heap_peak_bytes);
    CHECK(events.timeline.count > TIMELINE_STEPS / 2);
    free_result(&events);
    free_result(&sums);
    summary_free(&told);
    close(fd);
}

TEST(a_small_file_has_no_index) {
    struct result sums;
    struct summary told;
    int fd = record(1000, &told);
    CHECK(!read_sums(fd, &sums));
    CHECK(lseek(fd, 0, SEEK_CUR) == 0);
    free_result(&sums);
    summary_free(&told);
    close(fd);
}

// Wherever a byte changes, in a chunk or in the index, events are what counts.
TEST(damage_is_noticed) {
    struct result sums;
    struct summary told;
    int fd = record(EVENTS, &told);
    uint64_t size = (uint64_t)lseek(fd, 0, SEEK_END), index = index_of(fd);
    for (int i = 0; i < 40; i++) {
        off_t at = i % 2 ? (off_t)(index + any(size - index)) : (off_t)(200 + any(index - 200));
        // The reserved word of an index is the only place where it makes no difference.
        if (at >= (off_t)index + 12 && at < (off_t)index + 16)
            continue;
        uint8_t old, new;
        CHECK(pread(fd, &old, 1, at) == 1);
        new = old ^ (uint8_t)(1u << any(8));
        CHECK(pwrite(fd, &new, 1, at) == 1);
        bool is_used = read_sums(fd, &sums);
        CHECK(!is_used || i % 2 == 0);
        // Of chunks it is the same, and there are some.
        if (is_used)
            CHECK_EQ(sums.summary.total.allocated, told.total.allocated);
        else
            CHECK(lseek(fd, 0, SEEK_CUR) == 0);
        free_result(&sums);
        CHECK(pwrite(fd, &old, 1, at) == 1);
    }
    CHECK(ftruncate(fd, (off_t)index) == 0);
    CHECK(!read_sums(fd, &sums));
    free_result(&sums);
    read_events(fd, &sums);
    CHECK(sums.info.is_complete && !sums.info.damage);
    check_sites(&told, &sums.summary);
    free_result(&sums);
    summary_free(&told);
    close(fd);
}

// Writes an index at the place of the old one.
static void replace_index(int fd, uint64_t at, const uint8_t *plain, size_t size) {
    static uint8_t packed[1 << 20];
    struct recording_chunk chunk = {.plain = (uint32_t)size};
    CHECK(pread(fd, &chunk.magic, sizeof chunk.magic, (off_t)at) == sizeof chunk.magic);
    chunk.packed = (uint32_t)ZSTD_compress(packed, sizeof packed, plain, size, 1);
    CHECK(ftruncate(fd, (off_t)at) == 0 && lseek(fd, (off_t)at, SEEK_SET) == (off_t)at);
    CHECK(write(fd, &chunk, sizeof chunk) == sizeof chunk);
    CHECK(write(fd, packed, chunk.packed) == (ssize_t)chunk.packed);
    CHECK(write(fd, &at, sizeof at) == sizeof at && write(fd, "QUERNIDX", 8) == 8);
}

// An index that passes its checksum but was never written by us.
TEST(hostile_indexes_do_no_harm) {
    static uint8_t packed[1 << 20], plain[1 << 20], bent[1 << 20];
    struct result sums;
    struct summary told;
    struct recording_chunk chunk;
    int fd = record(EVENTS, &told), refused = 0, used = 0;
    uint64_t index = index_of(fd);
    CHECK(pread(fd, &chunk, sizeof chunk, (off_t)index) == sizeof chunk);
    CHECK(pread(fd, packed, chunk.packed, (off_t)(index + sizeof chunk)) == (ssize_t)chunk.packed);
    size_t size = ZSTD_decompress(plain, sizeof plain, packed, chunk.packed);
    CHECK_EQ(size, chunk.plain);
    for (int i = 0; i < 120; i++) {
        memcpy(bent, plain, size);
        size_t left = any(4) ? size : 1 + any(size);
        for (uint64_t times = any(3); times > 0; times--) {
            size_t at = any(left);
            memset(bent + at, any(2) ? 0xff : (int)any(256),
                   1 + any(left - at < 12 ? left - at : 12));
        }
        replace_index(fd, index, bent, left);
        bool is_used = read_sums(fd, &sums);
        used += is_used;
        refused += !is_used;
        if (is_used)
            CHECK_EQ(sums.summary.total.allocated, told.total.allocated);
        free_result(&sums);
    }
    CHECK(refused > 20 && used > 10);
    summary_free(&told);
    close(fd);
}

// The index of one run behind the events of another.
TEST(an_index_of_something_else_is_not_used) {
    static uint8_t bytes[1 << 20];
    struct result sums;
    struct summary told, other;
    int fd = record(EVENTS, &told), second = record(EVENTS + 1, &other);
    uint64_t at = index_of(fd), from = index_of(second);
    ssize_t size = pread(second, bytes, sizeof bytes, (off_t)from);
    CHECK(size > 32 && ftruncate(fd, (off_t)at) == 0);
    CHECK(pwrite(fd, bytes, (size_t)size - 16, (off_t)at) == size - 16);
    CHECK(lseek(fd, 0, SEEK_END) > 0);
    CHECK(write(fd, &at, sizeof at) == sizeof at && write(fd, "QUERNIDX", 8) == 8);
    CHECK(!read_sums(fd, &sums));
    free_result(&sums);
    summary_free(&told);
    summary_free(&other);
    close(fd);
    close(second);
}

UNIT_MAIN()
