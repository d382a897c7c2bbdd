// Twenty threads that count, most of them asleep most of the time, until `running` is cleared. A test
// that was cut off leaves it running: it ends after ten minutes.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 20 };
volatile long counters[THREADS];
volatile int running = 1;
static pthread_barrier_t barrier;

__attribute__((noinline)) static void tick(long number) {
    counters[number]++;
}

static void *work(void *argument) {
    long number = (long)argument;
    pthread_barrier_wait(&barrier);
    while (running) {
        tick(number);
        if (number % 7)
            usleep(1000);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    alarm(600);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_barrier_wait(&barrier);
    fprintf(stderr, "READY\n");
    while (running)
        usleep(1000);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("end");
    return 3;
}
