// The supervisor's reading of a shared area: rings put in order, and rings full of nonsense.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/heap/summary.h"
#include "tools/shared/supervisor/recorded/source.h"
#include "any.h"
#include "unit.h"
#include "wire/wire.h"
#include "wire/wire_heap_ring.h"

struct area {
    struct wire_heap_header *header;
    struct heap_source *source;
    struct summary summary;
};

static struct wire_heap_ring *ring_of(const struct area *area, unsigned index) {
    return (struct wire_heap_ring *)((char *)area->header + WIRE_HEAP_RING_AT(index));
}

static void open_area(struct area *area, unsigned rings) {
    int fd = memfd_create("area", MFD_ALLOW_SEALING);
    const char *problem;
    struct heap_sink sink;
    *area = (struct area){0};
    CHECK(ftruncate(fd, WIRE_HEAP_SIZE) == 0);
    area->header = mmap(NULL, WIRE_HEAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(area->header != MAP_FAILED);
    CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    area->header->version = WIRE_VERSION;
    area->header->clock = WIRE_HEAP_CLOCK_MONOTONIC;
    area->header->ring_count = rings;
    area->source = heap_source_open(fd, WIRE_HEAP_SIZE, &problem);
    CHECK(area->source);
    summary_sink(&area->summary, &sink);
    heap_source_add(area->source, &sink);
}

static void close_area(struct area *area) {
    heap_source_free(area->source);
    summary_free(&area->summary);
    munmap(area->header, WIRE_HEAP_SIZE);
}

// Adds a record of so many words.
static void put(const struct area *area, unsigned index, uint64_t clock, unsigned kind,
                unsigned count, uint64_t a, uint64_t b, uint64_t c) {
    struct wire_heap_ring *ring = ring_of(area, index);
    const uint64_t words[] = {clock << WIRE_HEAP_KIND_BITS | kind, a, b, c};
    for (unsigned i = 0; i < count; i++)
        ring->words[(ring->tail + i) % WIRE_HEAP_RING_WORDS] = words[i];
    ring->tail += count;
}

TEST(rings_are_put_in_order) {
    struct area area;
    open_area(&area, 3);
    // A block goes through three threads: told by 1, resized by 2, freed by 0.
    put(&area, 1, 10, WIRE_HEAP_ALLOCATED, 4, 0x1000, 100, 0);
    put(&area, 2, 20, WIRE_HEAP_RESIZE_BEGAN, 2, 0x1000, 0, 0);
    put(&area, 1, 25, WIRE_HEAP_ALLOCATED, 4, 0x1000, 50, 0);
    put(&area, 2, 30, WIRE_HEAP_RESIZE_ENDED, 4, 0x2000, 300, 0);
    put(&area, 0, 40, WIRE_HEAP_FREED, 2, 0x2000, 0, 0);
    put(&area, 2, 50, WIRE_HEAP_FREED, 2, 0x9000, 0, 0);
    heap_source_drain(area.source, false);
    struct heap_source_counts counts = heap_source_counts(area.source);
    CHECK_EQ(counts.allocated, 2);
    CHECK_EQ(counts.resized, 1);
    CHECK_EQ(counts.freed, 1);
    CHECK_EQ(counts.unknown, 1);
    CHECK_EQ(counts.repaired, 0);
    CHECK_EQ(area.summary.total.live_bytes, 50);
    CHECK_EQ(area.summary.total.peak_bytes, 350);
    CHECK_EQ(ring_of(&area, 1)->head, 8);
    CHECK(!heap_source_broken(area.source));
    close_area(&area);
}

TEST(what_is_too_new_waits) {
    struct area area;
    open_area(&area, 2);
    put(&area, 1, UINT64_MAX >> 8, WIRE_HEAP_ALLOCATED, 4, 0x1000, 100, 0);
    heap_source_drain(area.source, false);
    CHECK_EQ(heap_source_counts(area.source).allocated, 0);
    heap_source_drain(area.source, true);
    CHECK_EQ(heap_source_counts(area.source).allocated, 1);
    close_area(&area);
}

// The writer that the recorder uses, and the reader: records of two to four words cross the end of
// the ring many times, each at another place. Then nobody reads any more.
TEST(writer_and_reader_agree_in_a_ring) {
    struct area area;
    open_area(&area, 2);
    struct wire_heap_ring *ring = ring_of(&area, 1);
    uint64_t limit = 0, written = 0;
    for (uint64_t i = 0; written < 5 * WIRE_HEAP_RING_WORDS; i++) {
        uint64_t address = 0x1000 + i % 7 * 0x1000;
        wire_heap_write(area.header, ring, &limit, WIRE_HEAP_ALLOCATED, 3, address, 8, 0, NULL, 0,
                        NULL);
        wire_heap_write(area.header, ring, &limit, WIRE_HEAP_FREED, 1, address, 0, 0, NULL, 0,
                        NULL);
        written += 6;
        CHECK(wire_heap_ring_check(ring));
        if (i % 997 == 0 || ring->tail - ring->head > WIRE_HEAP_RING_WORDS - 16)
            heap_source_drain(area.source, true);
        CHECK(wire_heap_ring_check(ring));
    }
    heap_source_drain(area.source, true);
    CHECK_EQ(ring->head, written);
    CHECK_EQ(heap_source_counts(area.source).allocated, written / 6);
    CHECK_EQ(heap_source_counts(area.source).freed, written / 6);
    CHECK_EQ(heap_source_counts(area.source).repaired, 0);
    area.header->abandoned = 1;
    uint64_t room = WIRE_HEAP_RING_WORDS / 2;
    for (uint64_t i = 0; i < room + 3; i++)
        wire_heap_write(area.header, ring, &limit, WIRE_HEAP_FREED, 1, 0x1000, 0, 0, NULL, 0, NULL);
    CHECK(wire_heap_ring_check(ring));
    CHECK_EQ(ring->tail, written + WIRE_HEAP_RING_WORDS);
    CHECK_EQ(area.header->missed, 3);
    close_area(&area);
}

TEST(an_area_that_may_shrink_is_refused) {
    const char *problem = NULL;
    int fd = memfd_create("area", MFD_ALLOW_SEALING);
    CHECK(ftruncate(fd, WIRE_HEAP_SIZE) == 0);
    CHECK(!heap_source_open(fd, WIRE_HEAP_SIZE, &problem));
    CHECK(problem);
    fd = memfd_create("area", MFD_ALLOW_SEALING);
    CHECK(ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    CHECK(!heap_source_open(fd, 4096, &problem));
    fd = memfd_create("area", MFD_ALLOW_SEALING);
    CHECK(ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    CHECK(!heap_source_open(fd, WIRE_HEAP_SIZE, &problem));
}

static void put_nonsense(const struct area *area) {
    for (uint64_t left = 1 + any(60); left > 0; left--) {
        unsigned ring = (unsigned)any(4);
        uint64_t address = any(4) ? 16 * any(8) : any(UINT64_MAX);
        uint64_t size = any(60) ? any(5000) : (uint64_t)-1 - any(9);
        switch (any(any(20) ? 6 : 8)) {
        case 0:
        case 1:
            put(area, ring, any(1000), WIRE_HEAP_ALLOCATED, 4, address, size, any(1u << 24));
            break;
        case 2:
            put(area, ring, any(1000), WIRE_HEAP_FREED, 2, address, 0, 0);
            break;
        case 3:
            put(area, ring, any(1000), WIRE_HEAP_RESIZE_BEGAN, 2, address, 0, 0);
            break;
        case 4:
            put(area, ring, any(1000), WIRE_HEAP_RESIZE_ENDED, 4, any(3), size, any(100));
            break;
        case 5:
            put(area, ring, any(1000), WIRE_HEAP_STACK, 4, any(100) | 2ull << 32, any(999), 5);
            break;
        case 6:
            put(area, ring, any(1000), WIRE_HEAP_STACK, 2, any(1ull << 50), 0, 0);
            break;
        default:
            put(area, ring, any(UINT64_MAX), (unsigned)any(16), 1 + (unsigned)any(4), any(99), 1,
                2);
        }
    }
}

TEST(nonsense_does_no_harm) {
    int broken = 0;
    uint64_t told = 0;
    for (int i = 0; i < 800; i++) {
        struct area area;
        open_area(&area, any(30) ? 4 : (unsigned)any(UINT32_MAX));
        for (uint64_t rounds = 1 + any(3); rounds > 0; rounds--) {
            put_nonsense(&area);
            if (any(50) == 0)
                ring_of(&area, (unsigned)any(4))->tail = any(UINT64_MAX);
            heap_source_drain(area.source, any(2));
        }
        heap_source_drain(area.source, true);
        heap_source_end(area.source);
        summary_check(&area.summary);
        broken += heap_source_broken(area.source);
        // Whoever waits for room is let go.
        CHECK(!heap_source_broken(area.source) || area.header->abandoned);
        told += heap_source_counts(area.source).allocated;
        close_area(&area);
    }
    NOTE("%d of 800 areas given up, %llu allocations told", broken, (unsigned long long)told);
    CHECK(broken > 100 && broken < 800);
    CHECK(told > 5000);
}

UNIT_MAIN()
