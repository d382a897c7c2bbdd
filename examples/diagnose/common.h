// What the examples share: each is built as it is, and once more with FIXED.
#ifndef EXAMPLES_DIAGNOSE_COMMON_H
#define EXAMPLES_DIAGNOSE_COMMON_H

#include <stdbool.h>
#include <time.h>

// The examples have a clock of their own, which goes on when they rest: so on a busy machine they do
// the same steps, only later.
static inline long *example_clock(void) {
    static long microseconds;
    return &microseconds;
}

// Whether the run has not lasted so many milliseconds yet.
static inline bool still_within(long milliseconds) {
    return *example_clock() < milliseconds * 1000;
}

static inline void rest(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    *example_clock() += microseconds;
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, 0);
}

#ifdef FIXED
#define IS_FIXED true
#else
#define IS_FIXED false
#endif

#endif
