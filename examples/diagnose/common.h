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

// Until the next beat. On a busy machine, what was late is caught up with.
static inline void rest(long microseconds) {
    static struct timespec beat;
    if (!beat.tv_sec && !beat.tv_nsec)
        clock_gettime(CLOCK_MONOTONIC, &beat);
    beat.tv_nsec += microseconds * 1000;
    beat.tv_sec += beat.tv_nsec / 1000000000;
    beat.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &beat, 0);
}

#ifdef FIXED
#define IS_FIXED true
#else
#define IS_FIXED false
#endif

#endif
