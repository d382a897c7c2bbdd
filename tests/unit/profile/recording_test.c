// Recordings: what is written is read back; what is cut off or damaged gives what it holds and no
// more. Damage is the same in every run.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/vector.h"
#include "profile/heap/blocks.h"
#include "profile/heap/classes.h"
#include "profile/heap/kinds.h"
#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "any.h"
#include "unit.h"

// ---- a history to record ----

#define LIVE_MAX 300

struct history {
    struct heap_sink sinks[2];
    struct heap_block live[LIVE_MAX];
    size_t count;
    uint64_t number, time;
    uint32_t stacks;
};

static void tell(struct history *history, const struct heap_event *event) {
    for (int i = 0; i < 2; i++)
        history->sinks[i].event(history->sinks[i].context, event);
}

static uint32_t some_stack(struct history *history) {
    if (history->stacks && any(20))
        return (uint32_t)any(history->stacks + 1);
    uint64_t pcs[HEAP_FRAMES_MAX];
    size_t depth = any(5) ? any(20) : any(HEAP_FRAMES_MAX + 1);
    for (size_t i = 0; i < depth; i++)
        pcs[i] = any(3) ? 0x400000 + any(100000) : 0x7f0000000000 + any(1u << 30);
    history->stacks++;
    bool truncated = any(2);
    for (int i = 0; i < 2; i++)
        history->sinks[i].stack(history->sinks[i].context, history->stacks, pcs, depth, truncated);
    return history->stacks;
}

static void one_event(struct history *history) {
    struct heap_event event = {.time = history->time += any(200000), .thread = 1 + any(2)};
    uint64_t choice = any(10);
    size_t at = history->count ? any(history->count) : 0;
    if (history->count == 0 || (choice < 5 && history->count < LIVE_MAX)) {
        uint64_t size = any(50) ? any(5000) : any(HEAP_SIZE_MAX + 1);
        struct heap_block *block = &history->live[history->count++];
        *block = (struct heap_block){.number = ++history->number,
                                     .size = size,
                                     .capacity = heap_rounded(size),
                                     .stack = some_stack(history),
                                     .thread = event.thread};
        event.kind = HEAP_ALLOCATED;
        event.block = block;
    } else if (choice < 8) {
        event.kind = HEAP_FREED;
        event.before = history->live[at];
        history->live[at] = history->live[--history->count];
    } else {
        event.kind = HEAP_RESIZED;
        event.before = history->live[at];
        history->live[at].size = any(9000);
        history->live[at].capacity = heap_resized(event.before.capacity, history->live[at].size);
        history->live[at].stack = some_stack(history);
        event.block = &history->live[at];
    }
    tell(history, &event);
}

// Records a history of so many events into memory; the descriptor. The summary is of what was told.
static int record(size_t events, struct summary *summary, bool with_end) {
    int fd = memfd_create("recording", 0);
    struct history history = {0};
    struct recording_process process = {.pid = 42, .started = 1700000000, .command = "a command"};
    struct recording_writer *writer = recording_create(dup(fd), &process);
    recording_sink(writer, &history.sinks[0]);
    summary_sink(summary, &history.sinks[1]);
    struct heap_mapping mapping = {
        .start = 0x400000, .end = 0x500000, .offset = 4096, .inode = 7, .path = "/bin/thing"};
    history.sinks[0].mapping(writer, &mapping);
    for (uint32_t thread = 1; thread <= 2; thread++)
        for (int i = 0; i < 2; i++)
            history.sinks[i].thread(history.sinks[i].context, thread, 1000 + (int)thread);
    uint64_t clock = 1;
    for (size_t i = 0; i < events; i++) {
        one_event(&history);
        if (i % 1000 == 0) {
            recording_tick(writer, clock);
            recording_tick(writer, clock += 2000000000);
        }
    }
    history.sinks[1].end(summary, history.time);
    if (with_end) {
        struct recording_end end = {.time = history.time, .missed = 3, .unknown = 5};
        CHECK_EQ(recording_close(writer, &end), 0);
    }
    return fd;
}

static bool read_back(int fd, struct summary *summary, struct recording_info *info) {
    struct heap_sink sink;
    *summary = (struct summary){0};
    summary_sink(summary, &sink);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    bool is_one = recording_read(fd, &sink, 1, info);
    summary_check(summary);
    return is_one;
}

static bool same_totals(const struct summary *a, const struct summary *b) {
    return memcmp(&a->total, &b->total, sizeof a->total) == 0 && a->freed == b->freed &&
           a->resized == b->resized && a->threads == b->threads;
}

// ---- tests ----

TEST(kinds_differ_in_size_stack_and_thread) {
    struct entry {
        struct kind kind;
        int count;
    } *entries = NULL;
    struct map map = {0};
    size_t count = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct kind kind = {.size = i % 10, .stack = i / 10 % 10, .thread = i / 100};
        CHECK_EQ(kinds_find(&map, entries, sizeof *entries, &kind), MAP_NONE);
        CHECK_EQ(kinds_add(&map, &kind), i);
        *vector_push(entries, count) = (struct entry){.kind = kind};
    }
    kinds_check(&map, entries, sizeof *entries, count);
    free(entries);
    map_free(&map);
}

TEST(kinds_of_one_hash_are_told_apart) {
    struct kind wanted = {1, 2, 3}, others[] = {{0, 2, 3}, {1, 0, 3}, {1, 2, 0}};
    struct map map = {0};
    for (unsigned i = 0; i < 3; i++)
        map_add(&map, kinds_hash(&wanted));
    CHECK_EQ(kinds_find(&map, others, sizeof *others, &wanted), MAP_NONE);
    others[1].stack = 2;
    CHECK_EQ(kinds_find(&map, others, sizeof *others, &wanted), 1);
    map_free(&map);
}

TEST(blocks_keep_what_they_are_given) {
    struct blocks blocks = {0};
    static uint64_t keys[4000];
    size_t count = 0;
    struct heap_block block;
    CHECK(!blocks_find(&blocks, 5));
    CHECK(!blocks_remove(&blocks, 5, &block));
    for (int i = 0; i < 60000; i++) {
        if (count < 4000 && (count == 0 || any(2 + i / 30000))) {
            uint64_t key = 16 * (1 + any(1u << 24));
            if (blocks_find(&blocks, key))
                continue;
            blocks_insert(&blocks, key)->size = key + 1;
            keys[count++] = key;
        } else {
            size_t at = any(count);
            CHECK_EQ(blocks_find(&blocks, keys[at])->size, keys[at] + 1);
            CHECK(blocks_remove(&blocks, keys[at], &block));
            CHECK_EQ(block.size, keys[at] + 1);
            CHECK(!blocks_find(&blocks, keys[at]));
            keys[at] = keys[--count];
        }
        if (i % 5000 == 0)
            blocks_check(&blocks);
    }
    CHECK_EQ(blocks.count, count);
    blocks_free(&blocks);
}

TEST(what_is_written_is_read) {
    struct summary written = {0};
    struct summary read;
    struct recording_info info;
    int fd = record(50000, &written, true);
    CHECK(read_back(fd, &read, &info));
    CHECK(!info.damage);
    CHECK(info.is_complete);
    CHECK_EQ(info.process.pid, 42);
    CHECK_EQ(info.process.started, 1700000000);
    CHECK(strcmp(info.process.command, "a command") == 0);
    CHECK_EQ(info.end.missed, 3);
    CHECK_EQ(info.end.unknown, 5);
    CHECK_EQ(info.end.time, written.time);
    CHECK_EQ(info.allocated, written.total.allocated);
    CHECK(same_totals(&written, &read));
    // Stacks 1 to so many are used; each is as it was.
    for (uint32_t i = 1; i < written.stacks.count; i++) {
        const struct stacks_entry *a = stacks_get(&written.stacks, i);
        const struct stacks_entry *b = stacks_get(&read.stacks, i);
        CHECK_EQ(a->count, b->count);
        CHECK_EQ(a->truncated, b->truncated);
        CHECK(a->count == 0 || memcmp(a->pcs, b->pcs, a->count * sizeof *a->pcs) == 0);
    }
    for (size_t i = 0; i < written.site_count; i++)
        CHECK(memcmp(&written.sites[i], &read.sites[i], 7 * sizeof(uint64_t)) == 0);
    recording_info_free(&info);
    summary_free(&written);
    summary_free(&read);
    close(fd);
}

// A number for the life of a block that does not depend on which of its twins it is, summed up.
static uint64_t lives;

static void count_life(void *context, const struct heap_event *event) {
    const struct heap_block *before = &event->before;
    if (event->kind == HEAP_ALLOCATED)
        return;
    uint64_t parts[] = {before->stack, before->size,   before->capacity, before->time,
                        event->time,   before->thread, event->thread,    event->kind};
    uint64_t hash = 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    lives += hash;
}

// Few stacks and sizes, several threads, times of every other millisecond, blocks that go in any
// order.
static void live_and_die(struct heap_sink *sinks, size_t events) {
    static struct heap_block live[2000];
    size_t count = 0;
    uint64_t number = 0, time = 0;
    for (size_t i = 0; i < events; i++) {
        struct heap_event event = {.time = time += any(30) ? 0 : 2000000 * any(40),
                                   .thread = 1 + (uint32_t)any(11)};
        size_t at = count ? (any(3) ? any(count) : count - 1) : 0;
        uint64_t size = any(4) ? 16 * any(5) : any(300);
        if (count < 2000 && (!count || any(100) < 51)) {
            event.kind = HEAP_ALLOCATED;
            event.block = &live[count++];
            *event.block = (struct heap_block){.number = ++number,
                                               .size = size,
                                               .capacity = heap_rounded(size),
                                               .time = time,
                                               .stack = (uint32_t)any(4),
                                               .thread = event.thread};
        } else if (any(5)) {
            event.kind = HEAP_FREED;
            event.before = live[at];
            live[at] = live[--count];
        } else {
            event.kind = HEAP_RESIZED;
            event.before = live[at];
            event.block = &live[at];
            event.block->size = size;
            event.block->capacity = heap_resized(event.before.capacity, size);
        }
        for (int j = 0; j < 2; j++)
            sinks[j].event(sinks[j].context, &event);
    }
}

TEST(blocks_live_as_long_as_they_did) {
    int fd = memfd_create("lives", 0);
    struct recording_process process = {.pid = 1, .command = "c"};
    struct recording_writer *writer = recording_create(dup(fd), &process);
    struct heap_sink sinks[2] = {{0}, {.event = count_life}};
    recording_sink(writer, &sinks[0]);
    for (uint32_t thread = 1; thread <= 11; thread++)
        sinks[0].thread(writer, thread, 100 + (int)thread);
    // The stacks: ids are given out in order.
    for (uint32_t stack = 1; stack < 4; stack++)
        sinks[0].stack(writer, stack, (uint64_t[]){stack}, 1, false);
    lives = 0;
    live_and_die(sinks, 400000);
    uint64_t told = lives;
    CHECK_EQ(recording_close(writer, &(struct recording_end){.time = 1}), 0);
    struct recording_info info;
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    lives = 0;
    CHECK(recording_read(fd, &sinks[1], 1, &info));
    CHECK(!info.damage);
    CHECK(info.is_complete);
    CHECK(info.freed > 100000 && info.resized > 20000);
    CHECK_EQ(lives, told);
    recording_info_free(&info);
    close(fd);
}

TEST(classes_keep_their_order) {
    struct classes classes = {0};
    static uint32_t groups[3000];
    size_t count = 0;
    for (int i = 0; i < 100000; i++) {
        if (count < 3000 && (!count || any(2))) {
            uint32_t stack = (uint32_t)any(5);
            uint64_t size = any(90);
            uint32_t class = classes_find(&classes, stack, size);
            if (!class)
                class = classes_add(&classes, stack, size);
            CHECK(classes.list[class].kind.size == size || classes_is_loose(&classes, class));
            groups[count++] =
                classes_enter(&classes, class,
                              &(struct classes_blocks){.size = size, .time = i / 50}, any(4) == 0);
        } else {
            size_t at = any(count);
            uint32_t step = classes_step(&classes, groups[at]);
            if (step <= CLASSES_STEP_MAX)
                CHECK_EQ(classes_at(&classes, classes.groups[groups[at]].class, step), groups[at]);
            CHECK(classes_has(&classes, groups[at]));
            classes_leave(&classes, groups[at]);
            groups[at] = groups[--count];
        }
        if (i % 5000 == 0)
            classes_check(&classes);
    }
    CHECK(classes.count <= 5 * (CLASSES_OF_STACK + 1));
    classes_free(&classes);
}

TEST(a_cut_off_file_gives_what_it_holds) {
    struct summary written = {0};
    struct summary read;
    struct recording_info info;
    int fd = record(20000, &written, true);
    off_t size = lseek(fd, 0, SEEK_END);
    uint64_t last = 0;
    uint64_t steps = 0;
    for (off_t at = sizeof(struct recording_header); at < size; at += 1 + size / 150) {
        int part = memfd_create("part", 0);
        static char bytes[4 << 20];
        CHECK(size < (off_t)sizeof bytes && pread(fd, bytes, at, 0) == at);
        CHECK(write(part, bytes, at) == at);
        CHECK(read_back(part, &read, &info));
        CHECK(!info.damage);
        CHECK(!info.is_complete);
        CHECK(info.allocated >= last && info.allocated <= written.total.allocated);
        steps += info.allocated > last;
        last = info.allocated;
        recording_info_free(&info);
        summary_free(&read);
        close(part);
    }
    CHECK(steps > 10);
    summary_free(&written);
    close(fd);
}

TEST(other_files_are_refused) {
    struct summary read;
    struct recording_info info;
    int fd = memfd_create("other", 0);
    CHECK(write(fd, "desc: (none)\ncmd: x\n", 20) == 20);
    CHECK(!read_back(fd, &read, &info));
    CHECK(strcmp(info.damage, "it is not a recording") == 0);
    recording_info_free(&info);
    struct recording_header header = {.magic = RECORDING_MAGIC, .version = 77};
    CHECK(pwrite(fd, &header, sizeof header, 0) == sizeof header);
    CHECK(!read_back(fd, &read, &info));
    CHECK(strcmp(info.damage, "it is of version 77, and this Quern reads versions 2 to 6") == 0);
    recording_info_free(&info);
    close(fd);
}

TEST(damaged_bytes_are_noticed) {
    struct summary written = {0};
    struct summary read;
    struct recording_info info;
    int fd = record(3000, &written, true);
    off_t size = lseek(fd, 0, SEEK_END);
    for (int i = 0; i < 400; i++) {
        off_t at = (off_t)(sizeof(struct recording_header) + any((uint64_t)size - 16));
        char old;
        CHECK(pread(fd, &old, 1, at) == 1);
        char new = (char)(old ^ (1 << any(8)));
        CHECK(pwrite(fd, &new, 1, at) == 1);
        CHECK(read_back(fd, &read, &info));
        // A chunk's reserved word is the only place where it makes no difference.
        CHECK(info.damage || !info.is_complete || same_totals(&written, &read));
        CHECK(info.allocated <= written.total.allocated);
        recording_info_free(&info);
        summary_free(&read);
        CHECK(pwrite(fd, &old, 1, at) == 1);
    }
    summary_free(&written);
    close(fd);
}

// Records that pass the checksum but were never written by us: what write_hostile_start begins.
static void write_hostile(int fd, const uint8_t *plain, size_t size) {
    static uint8_t packed[2 << 20];
    struct recording_chunk chunk = {.magic = RECORDING_CHUNK_MAGIC, .plain = (uint32_t)size};
    chunk.packed = (uint32_t)ZSTD_compress(packed, sizeof packed, plain, size, 1);
    CHECK(write(fd, &chunk, sizeof chunk) == sizeof chunk);
    CHECK(write(fd, packed, chunk.packed) == (ssize_t)chunk.packed);
}

static void write_hostile_start(int fd) {
    struct recording_header header = {.magic = RECORDING_MAGIC, .version = RECORDING_VERSION};
    CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    CHECK(write(fd, &header, sizeof header) == sizeof header);
}

static bool read_chunk(int fd, struct recording_chunk *chunk, uint8_t *packed) {
    return read(fd, chunk, sizeof *chunk) == sizeof *chunk &&
           read(fd, packed, chunk->packed) == (ssize_t)chunk->packed;
}

#define CHUNKS_MAX 8

TEST(hostile_records_do_no_harm) {
    struct summary written = {0};
    struct summary read;
    struct recording_info info;
    static uint8_t plain[CHUNKS_MAX][1 << 18], bent[1 << 18];
    static uint8_t packed[1 << 20];
    size_t sizes[CHUNKS_MAX], chunks = 0;
    any_state = 99;
    int fd = record(2900, &written, true);
    CHECK(lseek(fd, sizeof(struct recording_header), SEEK_SET) > 0);
    for (struct recording_chunk chunk; chunks < CHUNKS_MAX && read_chunk(fd, &chunk, packed);)
        sizes[chunks] = ZSTD_decompress(plain[chunks], sizeof plain[chunks], packed, chunk.packed),
        chunks++;
    CHECK(chunks > 3 && chunks < CHUNKS_MAX);
    int hostile = memfd_create("hostile", 0);
    int damaged = 0;
    for (int i = 0; i < 6000; i++) {
        size_t which = any(chunks), used = sizes[which];
        memcpy(bent, plain[which], used);
        size_t size = any(4) ? used : 1 + any(used);
        for (uint64_t times = 1 + any(4); times > 0; times--) {
            size_t at = any(size);
            if (any(2))
                bent[at] = (uint8_t)any(256);
            else if (any(2))
                memmove(bent + at, bent + at + 1, size - at - 1);
            else
                memset(bent + at, 0xff, 1 + any(size - at < 12 ? size - at : 12));
        }
        write_hostile_start(hostile);
        for (size_t j = 0; j < chunks; j++)
            write_hostile(hostile, j == which ? bent : plain[j], j == which ? size : sizes[j]);
        CHECK(read_back(hostile, &read, &info));
        damaged += info.damage != NULL;
        recording_info_free(&info);
        summary_free(&read);
    }
    CHECK(damaged > 1000);
    summary_free(&written);
    close(fd);
    close(hostile);
}

UNIT_MAIN()
