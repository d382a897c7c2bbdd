// Threads of a pool keep a slab each and wait for work that never comes, while the main thread
// allocates. With ALL_SLEEP, it waits as well.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { THREADS = 4, SIZE = 1 << 20 };
char *volatile slabs[THREADS];
static pthread_barrier_t ready;
static void *wait_for_work(void *number) {
    slabs[(size_t)number] = malloc(SIZE);
    memset(slabs[(size_t)number], 1, SIZE);
    pthread_barrier_wait(&ready);
    for (;;)
        nanosleep(&(struct timespec){1000, 0}, NULL);
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&ready, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, wait_for_work, (void *)i);
    pthread_barrier_wait(&ready);
    for (int i = 0; i < 1000; i++) {
#ifndef ALL_SLEEP
        void *volatile block = malloc(100);
        free(block);
#endif
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return 0;
}
