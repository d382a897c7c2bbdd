// Threads, signals, requests and allocations in known numbers.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 10, SIGNALS = 3, REQUESTS = 2 };

static void *volatile kept;

static void on_signal(int number) {}

static void *run(void *unused) {
    for (int i = 0; i < BLOCKS; i++) {
        kept = malloc(10);
        free(kept);
    }
    return NULL;
}

// RUNNING_ON_VALGRIND, in the encoding that valgrind.h documents.
static uint64_t running_on(void) {
    uint64_t words[6] = {0x1001}, answer = 0;
    __asm__ volatile("rol $3, %%rdi; rol $13, %%rdi; rol $61, %%rdi; rol $51, %%rdi;"
                     "xchg %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(words)
                     : "cc", "memory");
    return answer;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < SIGNALS; i++)
        raise(SIGUSR1);
    if (argc > 1) {
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, run, NULL);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    uint64_t answers = 0;
    for (int i = 0; i < REQUESTS; i++)
        answers += running_on();
    printf("%d\n", (int)answers);
    return 0;
}
