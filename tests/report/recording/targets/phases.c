// Three phases of 0.2 seconds each. early() allocates in the first and releases half of it in the
// third, late() allocates in the second, creep() allocates a block every few milliseconds all along,
// short_lived() allocates and frees at once, pairwise() two blocks at a time, a thread allocates on its own.
// What is late on a busy machine is caught up with, but nothing comes within two milliseconds of a change.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

void *held[100], *kept[60];

static void wait_until(const struct timespec *start, double seconds)
{
    struct timespec until = *start;
    long nanoseconds = until.tv_nsec + (long)(seconds * 1e9);
    until.tv_sec += nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void stay_apart(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

__attribute__((noinline)) void early(void)
{
    for (int i = 0; i < 100; i++)
        held[i] = malloc(1000);
}

__attribute__((noinline)) void late(void)
{
    for (int i = 0; i < 60; i++)
        kept[i] = malloc(50);
}

__attribute__((noinline)) void creep(void)
{
    static void **last;
    void **next = malloc(3000);
    *next = last;
    last = next;
}

__attribute__((noinline)) void short_lived(void)
{
    for (int i = 0; i < 500; i++)
        free(malloc(7));
}

__attribute__((noinline)) void pairwise(void)
{
    for (int i = 0; i < 10; i++) {
        void *volatile first = malloc(11);
        void *volatile second = malloc(22);
        free(first);
        free(second);
    }
}

void *work(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    void *volatile block = malloc(12345);
    return block;
}

int main(void)
{
    struct timespec start;
    pthread_t thread;
    clock_gettime(CLOCK_MONOTONIC, &start);
    early();
    for (int i = 0; i < 120; i++) {
        int is_change = i == 40 || i == 60 || i == 70 || i == 80 || i == 100;
        if (is_change)
            stay_apart();
        if (i == 40)
            late();
        if (i == 60)
            short_lived();
        if (i == 70)
            pairwise();
        for (int j = 0; i == 80 && j < 50; j++)
            free(held[j]);
        if (i == 100) {
            pthread_create(&thread, NULL, work, NULL);
            pthread_join(thread, NULL);
        }
        if (is_change)
            stay_apart();
        creep();
        wait_until(&start, 0.005 * (i + 1));
    }
    return 0;
}
