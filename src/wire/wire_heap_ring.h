// Writing a record into a ring of wire_heap.h: the one writer for the preloaded recorder and for
// tools in the engine. Target context, one thread for each ring. It takes no locks and allocates
// nothing. It waits only while the ring is full, and leaves errno alone.
#ifndef QUERN_WIRE_WIRE_HEAP_RING_H
#define QUERN_WIRE_WIRE_HEAP_RING_H

#include <cpuid.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "wire/wire_heap.h"

#define WIRE_HEAP_WAIT_NANOSECONDS 20000000
#define WIRE_HEAP_WAITS_PER_CHECK  50

// The clock, read after everything before it has been done. A single thread needs no fence: its
// ring is in order anyway. A thread that has received something from a second one sees its ring.
static inline uint64_t wire_heap_now(const struct wire_heap_header *area) {
    if (area->clock != WIRE_HEAP_CLOCK_TSC)
        return clock_nanoseconds();
    if (atomic_load_explicit(&area->ring_count, memory_order_relaxed) > 2)
        _mm_lfence();
    return __rdtsc();
}

// Before the first record: chooses the clock of an area. The processor's counter serves if it runs
// evenly, whatever the speed of the processor.
static inline void wire_heap_start_clock(struct wire_heap_header *area) {
    unsigned eax, ebx, ecx, edx;
    bool is_even = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
    area->clock = is_even ? WIRE_HEAP_CLOCK_TSC : WIRE_HEAP_CLOCK_MONOTONIC;
    area->clock_start = wire_heap_now(area);
}

// Waits until the supervisor has made room for `needed` words in all. False: it will not make any.
// *limit becomes the words that may be written before `head` must be read again; it begins with 0.
// `is_heard` says whether the supervisor is still there; NULL: only area->abandoned says so.
static __attribute__((noinline)) bool wire_heap_wait(const struct wire_heap_header *area,
                                                     struct wire_heap_ring *ring, uint64_t *limit,
                                                     uint64_t needed, bool (*is_heard)(void)) {
    int saved = errno;
    bool has_room = false;
    for (unsigned waits = 0;; waits++) {
        uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
        *limit = head + WIRE_HEAP_RING_WORDS;
        has_room = needed <= *limit;
        bool is_check = waits % WIRE_HEAP_WAITS_PER_CHECK == WIRE_HEAP_WAITS_PER_CHECK - 1;
        if (has_room || atomic_load_explicit(&area->abandoned, memory_order_relaxed) ||
            (is_check && is_heard && !is_heard()))
            break;
        struct timespec time = {.tv_nsec = WIRE_HEAP_WAIT_NANOSECONDS};
        atomic_store(&ring->waiting, 1);
        syscall(SYS_futex, &ring->taken, FUTEX_WAIT, taken, &time, NULL, 0);
        atomic_store(&ring->waiting, 0);
    }
    errno = saved;
    return has_room;
}

static inline void wire_heap_put(struct wire_heap_ring *ring, uint64_t at, uint64_t word) {
    ring->words[at % WIRE_HEAP_RING_WORDS] = word;
}

// Writes a record: `count` words after the first (1 to 3 of a, b and c), then `more_count` further
// ones. A record that finds no room is counted as missed.
static inline __attribute__((always_inline)) void
wire_heap_write(struct wire_heap_header *area, struct wire_heap_ring *ring, uint64_t *limit,
                enum wire_heap_kind kind, unsigned count, uint64_t a, uint64_t b, uint64_t c,
                const uint64_t *more, size_t more_count, bool (*is_heard)(void)) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t end = tail + 1 + count + more_count;
    if (__builtin_expect(end > *limit, 0) && !wire_heap_wait(area, ring, limit, end, is_heard)) {
        atomic_fetch_add_explicit(&area->missed, 1, memory_order_relaxed);
        return;
    }
    wire_heap_put(ring, tail, wire_heap_now(area) << WIRE_HEAP_KIND_BITS | kind);
    wire_heap_put(ring, tail + 1, a);
    if (count > 1)
        wire_heap_put(ring, tail + 2, b);
    if (count > 2)
        wire_heap_put(ring, tail + 3, c);
    for (size_t i = 0; i < more_count; i++)
        wire_heap_put(ring, tail + 1 + count + i, more[i]);
    atomic_store_explicit(&ring->tail, end, memory_order_release);
}

#endif
