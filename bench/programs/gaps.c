// How long a program is interrupted: reads the clock all the time, for so many seconds of wall time,
// and prints the median of the interruptions that last less than a fifth of a millisecond, in
// microseconds, and what share of the time all of these take. Where the processor goes to somebody
// else it is longer; where most interruptions are samples, the median is what one takes from the
// program, however busy the machine is.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SHORTEST 400 // nanoseconds; what reading the clock does not take
#define LONGEST  200000

static uint32_t counts[LONGEST / 100];

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int count, char **words) {
    uint64_t last = now(), length = (uint64_t)(atof(count > 1 ? words[1] : "1") * 1e9);
    uint64_t end = last + length, all = 0, before = 0, lost = 0;
    size_t middle = 0;
    while (last < end) {
        uint64_t time = now();
        if (time - last > SHORTEST && time - last < LONGEST) {
            counts[(time - last) / 100]++;
            all++;
            lost += time - last;
        }
        last = time;
    }
    while (middle + 1 < sizeof counts / sizeof *counts && (before += counts[middle]) <= all / 2)
        middle++;
    printf("%.1f %.5f\n", (double)middle / 10, (double)lost / (double)length);
    return 0;
}
