// Two threads that sleep: what main waits for in sum is printed, in microseconds, by its own clock.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static __attribute__((noinline)) void nap(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
    __asm__ volatile("");
}

static void *sleep_elsewhere(void *unused) {
    for (int i = 0; i < 5; i++)
        nap(10);
    return NULL;
}

int main(void) {
    struct timespec start, end;
    pthread_t thread;
    pthread_create(&thread, NULL, sleep_elsewhere, NULL);
    pthread_join(thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 10; i++)
        nap(20);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld\n", (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
    return 0;
}
