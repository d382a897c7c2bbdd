// 2,000 threads made and joined, some at a time; then 300 detached ones; stacks and thread-local
// storage are reused.
#include "stress.h"

static __thread uint64_t local[16];
static _Atomic int detached;
static _Atomic uint64_t total;

static void *work(void *arg) {
    for (int i = 0; i < 16; i++) {
        SAME(local[i], 0);
        local[i] = (uint64_t)arg + (uint64_t)i;
    }
    total += local[7];
    return arg;
}

static void *quick(void *arg) {
    local[0]++;
    SAME(local[0], 1);
    detached++;
    return NULL;
}

int main(void) {
    for (long i = 0; i < 2000; i += 8) {
        pthread_t threads[8];
        for (long k = 0; k < 8; k++)
            threads[k] = stress_thread(work, (void *)(i + k));
        for (long k = 0; k < 8; k++)
            SAME(stress_join(threads[k]), i + k);
    }
    printf("total %llu\n", (unsigned long long)total);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (int i = 0; i < 300; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, quick, NULL) == 0);
    }
    while (detached < 300)
        stress_sleep_us(100);
    puts("detached done");
    return 0;
}
