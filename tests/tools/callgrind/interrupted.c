// A timer's signals, many of them, come while functions of known cost are called by two threads.
// Says in how many rounds.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#define APART __attribute__((noinline))
#define MANY  20 // signals

static volatile long hits;

static void tick(int number) {
    hits++;
}

APART static long leaf(long x) {
    __asm__ volatile("nop; nop; nop");
    return x + 1;
}

APART static long branch(long x) {
    return leaf(x) + leaf(x + 1);
}

APART static void *work(void *unused) {
    long sum = 0;
    for (long i = 0; i < 1000000; i++)
        sum += branch(i);
    return (void *)sum;
}

int main(void) {
    struct itimerval timer = {{0, 500}, {0, 500}};
    pthread_t other;
    int rounds = 0;
    signal(SIGPROF, tick);
    setitimer(ITIMER_PROF, &timer, NULL);
    do {
        pthread_create(&other, NULL, work, NULL);
        work(NULL);
        pthread_join(other, NULL);
        rounds++;
    } while (hits < MANY);
    timer = (struct itimerval){0};
    setitimer(ITIMER_PROF, &timer, NULL);
    printf("%d\n", rounds);
    return 0;
}
