// The time since the machine started: for deadlines, and for how long something took.
//
// Both sides. No allocation and no lock: code in the target may call it, also in a signal handler.
// The recorder's events have a clock of their own, which is faster (wire/wire_heap_ring.h).
#ifndef QUERN_BASE_CLOCK_H
#define QUERN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Signed, so that the difference of two times may be negative.
static inline int64_t clock_milliseconds(void) {
    return (int64_t)(clock_nanoseconds() / 1000000);
}

#endif
