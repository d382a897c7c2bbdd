/* Four threads that are deep in recursion at the same time. */
#include <pthread.h>
#include <stdlib.h>

static pthread_barrier_t barrier;

static long deep(int n) {
    volatile char frame[1000];
    frame[0] = (char)n;
    if (n == 0)
        pthread_barrier_wait(&barrier);
    return n == 0 ? frame[0] : deep(n - 1) + frame[0];
}

static void *run(void *number) {
    deep((int)(long)number);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, (void *)(100 + i));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
