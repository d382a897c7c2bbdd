// Built with AddressSanitizer, which searches for leaks: a process that shares the program's memory
// traces all its threads and reads their registers.
#include "stress.h"

#include <sanitizer/lsan_interface.h>

enum { THREADS = 3 };
static unsigned char *volatile kept;
static pthread_barrier_t barrier;
static int pipes[2];

__attribute__((noinline)) static void keep_block(size_t size) {
    kept = malloc(size);
    CHECK(kept);
}

// A thread that holds a block by its stack alone: one computes, the others wait for the kernel.
static void *hold_block(void *argument) {
    unsigned char *volatile block = malloc(1000);
    volatile unsigned long turns = 0;
    CHECK(block);
    pthread_barrier_wait(&barrier);
    if (argument)
        for (;;)
            turns++;
    CHECK(read(pipes[0], block, 1) == 1);
    free(block);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    keep_block(55);
    printf("kept: %d\n", __lsan_do_recoverable_leak_check());
    CHECK(pipe(pipes) == 0);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, hold_block, i == 0 ? &barrier : NULL) == 0);
    pthread_barrier_wait(&barrier);
    printf("threads: %d\n", __lsan_do_recoverable_leak_check());
    CHECK(write(pipes[1], "abc", THREADS - 1) == THREADS - 1);
    for (unsigned i = 1; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    keep_block(66);
    kept = NULL;
    printf("lost: %d\n", __lsan_do_recoverable_leak_check());
    fflush(stdout);
    return 0; // the last search decides the status
}
