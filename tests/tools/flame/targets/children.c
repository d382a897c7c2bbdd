// A child that goes on as it is and one that executes this program again. Each works for the same
// CPU time: what a processor does in it depends on what the others do.
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline __attribute__((always_inline)) void work(void) {
    while (used() < 0.6)
        turn(1000000);
}

__attribute__((noinline)) static void parent_work(void) {
    work();
    sink += 1;
}

__attribute__((noinline)) static void forked_work(void) {
    work();
    sink += 2;
}

__attribute__((noinline)) static void executed_work(void) {
    work();
    sink += 3;
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "executed") == 0) {
        executed_work();
        return 0;
    }
    if (fork() == 0) {
        forked_work();
        _exit(0);
    }
    if (fork() == 0) {
        execl(words[0], words[0], "executed", (char *)0);
        _exit(1);
    }
    parent_work();
    while (wait(0) > 0)
        ;
    return 0;
}
