// Asks for the time as often as servers do. With an argument, it reads what clock_gettime has not
// written.
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { ROUNDS = 50000 };

int main(int argc, char **argv) {
    struct timespec spec[2];
    struct timeval val;
    long later = 0; // time() goes by ticks, and may be late
    clock_gettime(CLOCK_MONOTONIC, &spec[1]);
    for (int i = 0; i < ROUNDS; i++) {
        clock_gettime(CLOCK_MONOTONIC, &spec[0]);
        gettimeofday(&val, NULL);
        later += spec[0].tv_sec >= spec[1].tv_sec && time(NULL) + 1 >= val.tv_sec;
    }
    printf("%d\n", later == ROUNDS);
    struct timespec *half = malloc(sizeof half->tv_sec);
    if (argc > 1)
        clock_gettime(CLOCK_REALTIME, half);
    free(half);
    return 0;
}
