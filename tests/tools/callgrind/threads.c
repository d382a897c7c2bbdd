// Threads side by side, and more of them one after the other than run at once.
#include <pthread.h>
#include <stdio.h>

#define APART __attribute__((noinline))

APART static int depth(int n) {
    return n ? depth(n - 1) + 1 : 0;
}

APART static long share(long rounds) {
    long sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += depth(i % 7);
    return sum;
}

static void *work(void *rounds) {
    return (void *)share((long)rounds);
}

int main(void) {
    pthread_t threads[4];
    long sum = 0;
    void *part;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)(1000 * (i + 1)));
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &part);
        sum += (long)part;
    }
    for (int i = 0; i < 30; i++) {
        pthread_create(&threads[0], NULL, work, (void *)10l);
        pthread_join(threads[0], &part);
        sum += (long)part;
    }
    return printf("%ld\n", sum) < 0;
}
