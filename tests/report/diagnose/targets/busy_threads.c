// Threads take a slab each when they start, and then work in it without the allocator, while the
// main thread allocates.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { THREADS = 4, SIZE = 1 << 20 };
char *volatile slabs[THREADS];
static int is_over;
static void *serve(void *number) {
    char *slab = slabs[(size_t)number] = malloc(SIZE);
    for (int i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        memset(slab, i, SIZE);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, serve, (void *)i);
    for (int i = 0; i < 500; i++) {
        void *volatile block = malloc(100);
        free(block);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
