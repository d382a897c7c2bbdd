// What the page is shown: recursion, threads, temporary blocks, leaks, errors.
#include <pthread.h>
#include <quern/heap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS 600

static void *held[2 * BLOCKS];
static void *volatile lost;

__attribute__((noinline)) static void *inner(size_t size) {
    return malloc(size);
}

__attribute__((noinline)) static void *deeper(int depth, size_t size) {
    return depth ? deeper(depth - 1, size) : inner(size);
}

__attribute__((noinline)) static void grow(int first) {
    for (int i = 0; i < BLOCKS; i++) {
        held[first + i] = deeper(i % 5, 16 + 7 * (size_t)i);
        if (i % 60 == 0)
            usleep(1000);
    }
}

__attribute__((noinline)) static void churn(void) {
    for (int i = 0; i < 25000; i++) {
        void *volatile block = malloc(32);
        free(block);
    }
}

__attribute__((noinline)) static void forget(void) {
    lost = malloc(1234);
    lost = malloc(4321);
    lost = NULL;
}

__attribute__((noinline)) static int overrun(void) {
    volatile char *block = malloc(10);
    block[10] = 1;
    free((void *)block);
    return block[3];
}

static void *worker(void *unused) {
    (void)unused;
    grow(BLOCKS);
    churn();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    int result = 0;
    pthread_create(&thread, NULL, worker, NULL);
    quern_heap_mark("<i>growing</i>");
    quern_heap_scope_begin("growth");
    grow(0);
    quern_heap_scope_end();
    quern_heap_mark("grown");
    churn();
    forget();
    if (argc > 1 && strcmp(argv[1], "errors") == 0)
        result = overrun();
    pthread_join(thread, NULL);
    for (int i = 0; i < BLOCKS; i++)
        free(held[i]);
    return result & 0;
}
