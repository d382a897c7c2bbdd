// 1,000 threads alive at the same time, meeting at barriers, each with its own computation.
#include "stress.h"

enum { THREADS = 1000 };

static pthread_barrier_t barrier;
static uint64_t results[THREADS];
static _Atomic int alive, most;

static void *work(void *arg) {
    long id = (long)arg;
    alive++;
    pthread_barrier_wait(&barrier);
    if (id == 0)
        most = alive;
    uint64_t h = (uint64_t)id;
    for (int i = 0; i < 500; i++)
        h = stress_mix(h, (uint64_t)i);
    results[id] = h;
    pthread_barrier_wait(&barrier);
    uint64_t neighbour = results[(id + 1) % THREADS];
    alive--;
    return (void *)(neighbour ^ h);
}

int main(void) {
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 * 1024);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (long i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], &attributes, work, (void *)i) == 0);
    uint64_t h = 0;
    for (int i = 0; i < THREADS; i++)
        h = stress_mix(h, (uint64_t)stress_join(threads[i]));
    printf("%d at once, %016llx\n", most, (unsigned long long)h);
    return 0;
}
