// Threads that allocate and free all the time, and check what they have written. At the end of
// stdin it prints "right" if everything was as it should be.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 300 };
static atomic_bool ends, is_wrong;
static pthread_barrier_t all_have_blocks;

struct block {
    unsigned char *at;
    size_t size;
    unsigned char mark;
};

static void renew(struct block *block, uint64_t seed) {
    if (block->at && (block->at[0] != block->mark || block->at[block->size - 1] != block->mark))
        is_wrong = true;
    free(block->at);
    block->size = 1 + (seed >> 40) % ((seed >> 20) % 64 == 0 ? 300000 : 800);
    block->mark = (unsigned char)(seed >> 50);
    block->at = malloc(block->size);
    memset(block->at, block->mark, block->size);
}

static void *work(void *argument) {
    uint64_t seed = (uintptr_t)argument + 1;
    struct block blocks[BLOCKS] = {0};
    for (unsigned i = 0; i < BLOCKS; i++)
        renew(&blocks[i], seed);
    pthread_barrier_wait(&all_have_blocks);
    while (!ends) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        renew(&blocks[(seed >> 33) % BLOCKS], seed);
        if ((seed >> 33) % 128 == 0)
            usleep(100);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    pthread_t threads[256];
    char byte;
    pthread_barrier_init(&all_have_blocks, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    pthread_barrier_wait(&all_have_blocks);
    if (write(1, "ready\n", 6) < 0 || read(0, &byte, 1) < 0)
        return 1;
    ends = true;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return write(1, is_wrong ? "wrong\n" : "right\n", 6) < 0;
}
