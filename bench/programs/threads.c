// threads N ROUNDS: N threads that each do the same fixed work and share nothing. On a machine with
// N free cores the wall time must not depend on N.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long rounds;

static uint64_t step(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static void *work(void *arg)
{
    uint64_t h = 1, table[1024] = {0};
    for (long i = 0; i < rounds; i++) {
        h = step(h, table[h >> 54]);
        table[(h >> 20) & 1023] += h;
        if (h & 1)
            h = step(h, (uint64_t)i);
    }
    return (void *)h;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]);
    rounds = atol(argv[2]);
    pthread_t threads[64];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    uint64_t all = 0;
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(threads[i], &result);
        all = (uint64_t)result;
    }
    printf("%016llx\n", (unsigned long long)all);
    return 0;
}
