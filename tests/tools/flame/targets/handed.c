// Two threads wait for each other until the events of CPUs have taken over from those of threads;
// what comes after that must be known as before: a library, a thread, a child, a program executed.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define TURNS 30000

static int there[2], back[2];

// For the CPU time of a thread: what a processor does in it depends on what the others do.
static inline __attribute__((always_inline)) void work(void) {
    struct timespec start, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        turn(1000000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1e9 + (double)(now.tv_nsec - start.tv_nsec) < 4e8);
}

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1)
        write(back[1], &byte, 1);
    return NULL;
}

__attribute__((noinline)) static void *thread_work(void *unused) {
    work();
    sink += 1;
    return NULL;
}

__attribute__((noinline)) static void forked_work(void) {
    work();
    sink += 2;
}

__attribute__((noinline)) static void executed_work(void) {
    work();
    sink += 3;
}

static void wait_for_each_other(void) {
    pthread_t thread;
    char byte = 0;
    if (pipe(there) < 0 || pipe(back) < 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
        _exit(1);
    for (int i = 0; i < TURNS; i++) {
        write(there[1], &byte, 1);
        read(back[0], &byte, 1);
    }
    close(there[1]);
    pthread_join(thread, NULL);
}

int main(int count, char **words) {
    pthread_t thread;
    if (strcmp(words[1], "executed") == 0) {
        executed_work();
        return 0;
    }
    wait_for_each_other();
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library)
        return 1;
    ((void (*)(void))dlsym(library, "plugged"))();
    dlclose(library);
    pthread_create(&thread, NULL, thread_work, NULL);
    pthread_join(thread, NULL);
    if (fork() == 0) {
        forked_work();
        _exit(0);
    }
    wait(0);
    if (vfork() == 0) {
        execl(words[0], words[0], "executed", (char *)0);
        _exit(1);
    }
    wait(0);
    return 0;
}
