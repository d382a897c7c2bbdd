// Two threads that wait for each other tens of thousands of times, each working in its turn, one
// twice as much as the other. Prints the CPU time that this took.
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define TURNS 30000

static int there[2], back[2];

__attribute__((noinline)) static void small_work(void) {
    turn(10000);
    sink++;
}

__attribute__((noinline)) static void large_work(void) {
    turn(20000);
    sink++;
}

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1) {
        small_work();
        write(back[1], &byte, 1);
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    struct timespec time;
    char byte = 0;
    if (pipe(there) < 0 || pipe(back) < 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
        return 1;
    for (int i = 0; i < TURNS; i++) {
        write(there[1], &byte, 1);
        read(back[0], &byte, 1);
        large_work();
    }
    close(there[1]);
    pthread_join(thread, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    printf("%.3f\n", (double)time.tv_sec + (double)time.tv_nsec / 1e9);
    return 0;
}
