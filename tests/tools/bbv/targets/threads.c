// Three threads that run the same code, each a different number of times, all at the same time.
#include <pthread.h>

static volatile int started;

__attribute__((noinline)) void work(volatile long *value, long times) {
    for (long i = 0; i < times; i++)
        *value += i;
}

__attribute__((noinline)) void wait_for_all(void) {
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    while (started < 3)
        __asm__ volatile("pause");
}

static void *run(void *times) {
    long value = 0;
    wait_for_all();
    work(&value, (long)times);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, run, (void *)(1000 * (i + 1)));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
