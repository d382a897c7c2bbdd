// What the examples share: each is built as it is, and once more with FIXED.
#ifndef EXAMPLES_DIAGNOSE_COMMON_H
#define EXAMPLES_DIAGNOSE_COMMON_H

#include <stdbool.h>
#include <time.h>

// Whether the run has not lasted so many milliseconds yet.
static inline bool still_within(long milliseconds) {
    static struct timespec begin;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!begin.tv_sec && !begin.tv_nsec)
        begin = now;
    return (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
           milliseconds;
}

static inline void rest(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, 0);
}

#ifdef FIXED
#define IS_FIXED true
#else
#define IS_FIXED false
#endif

#endif
