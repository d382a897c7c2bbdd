// churn THREADS EVENTS: threads that replace blocks of 16 to 1,024 bytes, 16 of them most of the
// time and 4,096 now and then, from many stacks: of a release it is hard to say which block goes.
// So many allocations and releases in all.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define HELD 4096
#define BUSY 16
#define WAYS 12

static long events;

static __attribute__((noinline)) void *take(size_t size)
{
    void *block = malloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static __attribute__((noinline)) void *take_deep(size_t size, unsigned depth)
{
    void *block = depth ? take_deep(size, depth - 1) : take(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void *work(void *number)
{
    uint64_t seed = (uintptr_t)number * 77 + 1;
    void **held = calloc(HELD, sizeof *held);
    for (long i = 0; i < events / 2; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned at = (seed >> 40) % (seed >> 60 ? BUSY : HELD);
        free(held[at]);
        held[at] = take_deep(16 * (1 + (seed >> 55) % 64), (seed >> 33) % WAYS);
    }
    return held;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[1]) : 0;
    pthread_t threads[256];
    if (count < 1 || count > 256)
        return 2;
    events = atol(argv[2]) / count;
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
