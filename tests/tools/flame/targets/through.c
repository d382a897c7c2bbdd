// Stacks through libraries, signal handlers, alternate stacks, the vdso and inlined calls.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static int compare(const void *a, const void *b) {
    turn(20000);
    return *(const int *)a - *(const int *)b;
}

static void handler(int number) {
    turn(300000000);
    sink++;
}

static inline __attribute__((always_inline)) void inlined_inner(void) {
    turn(300000000);
    sink++;
}

static inline __attribute__((always_inline)) void inlined_outer(void) {
    inlined_inner();
    sink++;
}

__attribute__((noinline)) static void holder(void) {
    inlined_outer();
    sink++;
}

__attribute__((noinline)) static void ask_time(void) {
    struct timespec now;
    for (int i = 0; i < 15000000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += (unsigned long)now.tv_nsec;
    }
}

__attribute__((noinline)) static void ask_kernel(void) {
    for (int i = 0; i < 2000000; i++)
        sink += (unsigned long)getppid();
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "sort") == 0) {
        static int numbers[4096];
        for (int i = 0; i < 4096; i++)
            numbers[i] = i * 7919 % 4096;
        qsort(numbers, 4096, sizeof *numbers, compare);
    } else if (strcmp(what, "signal") == 0) {
        static char stack[65536];
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, 0);
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = 0}, 0);
        raise(SIGUSR1);
    } else if (strcmp(what, "inlined") == 0) {
        holder();
    } else if (strcmp(what, "time") == 0) {
        ask_time();
    } else if (strcmp(what, "kernel") == 0) {
        ask_kernel();
    }
    return 0;
}
