// Two threads that say how much CPU time they took; the first thread of the program ends before
// they do.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "work.h"

__attribute__((noinline)) static void left(void) {
    for (int i = 0; i < 200; i++)
        turn(1000000);
    sink += 1;
}

__attribute__((noinline)) static void right(void) {
    for (int i = 0; i < 300; i++)
        turn(1000000);
    sink += 2;
}

static void say_time(const char *name) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    printf("%s %f\n", name, (double)time.tv_sec + (double)time.tv_nsec / 1e9);
}

static void *run_left(void *argument) {
    left();
    say_time("left");
    return argument;
}

static void *run_right(void *argument) {
    right();
    say_time("right");
    return argument;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, run_left, 0);
    pthread_create(&threads[1], 0, run_right, 0);
    pthread_exit(0);
}
