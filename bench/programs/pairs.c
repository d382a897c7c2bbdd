// pairs THREADS PAIRS DEPTH: each thread allocates and frees a block of 8 to 1,031 bytes PAIRS times,
// in a function DEPTH calls deep. It gets there along one of 16 paths and stays for 16 blocks, of
// which four live at a time, so that neither the stack nor the order of releases is always the same.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static long pairs;
static int depth;

struct state {
    uint64_t seed, sum;
    char *held[4];
};

static void replace(struct state *state, int at)
{
    state->seed = state->seed * 6364136223846793005u + 1442695040888963407u;
    free(state->held[at % 4]);
    char *block = malloc(8 + (state->seed >> 54));
    *block = (char)at;
    state->held[at % 4] = block;
    state->sum += state->seed >> 54;
}

static __attribute__((noinline)) void left(struct state *state, int level, unsigned path);

static __attribute__((noinline)) void right(struct state *state, int level, unsigned path)
{
    if (level == 0)
        for (int i = 0; i < 16; i++)
            replace(state, i);
    else if (path >> level % 4 & 1)
        left(state, level - 1, path);
    else
        right(state, level - 1, path);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void left(struct state *state, int level, unsigned path)
{
    if (level == 0)
        for (int i = 15; i >= 0; i--)
            replace(state, i);
    else if (path >> level % 4 & 1)
        right(state, level - 1, path);
    else
        left(state, level - 1, path);
    __asm__ volatile("" ::: "memory");
}

static void *work(void *number)
{
    struct state state = {.seed = (uint64_t)number};
    for (long i = 0; i < pairs / 16; i++)
        left(&state, depth, (unsigned)i & 15);
    for (int i = 0; i < 4; i++)
        free(state.held[i]);
    return (void *)state.sum;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]);
    pairs = atol(argv[2]);
    depth = atoi(argv[3]) - 3; // main or the thread's start, work, and the innermost one
    pthread_t threads[256];
    void *result;
    uint64_t sum = 0;
    for (int i = 1; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    sum = (uint64_t)work(NULL);
    for (int i = 1; i < count; i++) {
        pthread_join(threads[i], &result);
        sum += (uint64_t)result;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
