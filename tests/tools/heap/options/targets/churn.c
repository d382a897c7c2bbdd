// Allocates, resizes and frees in many ways, the same at every run: churn SEED ROUNDS [THREADS].
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIVE 200

static unsigned rounds;
static unsigned first_seed;

static unsigned next(unsigned *seed) {
    return *seed = *seed * 1103515245 + 12345, *seed >> 16 & 0x7fff;
}

static __attribute__((noinline)) void *one(size_t size) {
    return malloc(size);
}
static __attribute__((noinline)) void *two(size_t size) {
    return calloc(1, size);
}
static __attribute__((noinline)) void *grow(void *block, size_t size) {
    return realloc(block, size);
}
static __attribute__((noinline)) void *shrink(void *block, size_t size) {
    return realloc(block, size);
}

static void pause_a_little(void) {
    struct timespec time = {.tv_nsec = 1500000};
    nanosleep(&time, NULL);
}

static void *churn(void *argument) {
    void *live[LIVE] = {0};
    unsigned seed = first_seed + (unsigned)(size_t)argument;
    for (unsigned i = 0; i < rounds; i++) {
        unsigned at = next(&seed) % LIVE, what = next(&seed) % 8;
        if (what == 0 && live[at])
            live[at] = grow(live[at], 100 + next(&seed) % 3000);
        else if (what == 1 && live[at])
            live[at] = shrink(live[at], 1 + next(&seed) % 100);
        else if (what < 4)
            free(one(16 + next(&seed) % 64)); // temporary
        else if (what == 4) {
            void *a = one(8), *b = two(24);
            free(a);
            free(b);
        } else {
            free(live[at]);
            live[at] = what < 7 ? one(next(&seed) % 500) : two(1 + next(&seed));
        }
        if (i % 500 == 0)
            pause_a_little();
    }
    for (unsigned i = 0; i < LIVE; i += 2)
        free(live[i]);
    return NULL;
}

int main(int argc, char **argv) {
    first_seed = (unsigned)atoi(argv[1]);
    rounds = (unsigned)atoi(argv[2]);
    int count = argc > 3 ? atoi(argv[3]) : 1;
    pthread_t threads[16];
    for (int i = 1; i < count; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(size_t)i);
    churn(NULL);
    for (int i = 1; i < count; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
