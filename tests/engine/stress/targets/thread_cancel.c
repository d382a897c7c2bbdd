// pthread_cancel: deferred in blocking calls, asynchronous in loops, cleanup handlers, disabled
// cancellation, C++-like unwinding through frames.
#include "stress.h"

static _Atomic int cleaned, started;
static volatile int released;

static void clean(void *arg) {
    cleaned += (int)(long)arg;
}

static NOINLINE void sleep_forever(int depth) {
    pthread_cleanup_push(clean, (void *)1l);
    if (depth == 0) {
        started++;
        for (;;)
            pause();
    }
    sleep_forever(depth - 1);
    pthread_cleanup_pop(0);
}

static void *deferred(void *arg) {
    sleep_forever(5);
    return NULL;
}

static void *asynchronous(void *arg) {
    pthread_cleanup_push(clean, (void *)100l);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    started++;
    for (;;)
        SPIN();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *disabled(void *arg) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    started++;
    while (!released)
        stress_sleep_us(100);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_cleanup_push(clean, (void *)10000l);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *reading(void *arg) {
    char byte;
    started++;
    CHECK(read(((int *)arg)[0], &byte, 1) != 1);
    return NULL;
}

int main(void) {
    int fds[2];
    CHECK(pipe(fds) == 0);
    void *(*kinds[])(void *) = {deferred, asynchronous, disabled, reading};
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        started = released = 0;
        for (int i = 0; i < 4; i++)
            threads[i] = stress_thread(kinds[i], fds);
        while (started < 4)
            stress_sleep_us(100);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_cancel(threads[i]) == 0);
        released = 1;
        for (int i = 0; i < 4; i++)
            CHECK(stress_join(threads[i]) == PTHREAD_CANCELED);
    }
    printf("cleaned %d\n", cleaned);
    return 0;
}
