// Inlined callers of malloc, and many small sites below the threshold.
#include <stdlib.h>

static void *blocks[256];
static int count;

static inline __attribute__((always_inline)) void inner(size_t size) {
    blocks[count++] = malloc(size);
}

static inline __attribute__((always_inline)) void outer(size_t size) {
    inner(size + 16);
}

__attribute__((noinline)) static void work(void) {
    outer(4080);
    outer(8176);
    for (int i = 0; i < 20; i++)
        inner(512);
}

int main(void) {
    for (int i = 0; i < 5; i++)
        work();
    blocks[count++] = malloc(16);
    blocks[count++] = malloc(16);
    blocks[count++] = malloc(32);
    while (count)
        free(blocks[--count]);
    return 0;
}
