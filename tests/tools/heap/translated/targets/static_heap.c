/* Allocates in every way C has and frees some of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *chain(size_t size, int depth) {
    return depth ? chain(size, depth - 1) : malloc(size);
}

int main(void) {
    void *blocks[20], *aligned;
    for (int i = 0; i < 20; i++)
        blocks[i] = chain(100 + 10 * i, i);
    char *grown = NULL;
    for (int i = 0; i < 12; i++)
        grown = realloc(grown, 16u << i);
    if (posix_memalign(&aligned, 4096, 5000) || (size_t)aligned % 4096)
        return 1;
    char *zeroed = calloc(300, 100);
    for (int i = 0; i < 30000; i++)
        if (zeroed[i])
            return 2;
    memset(zeroed, 1, 30000);
    free(zeroed);
    zeroed = calloc(300, 100);
    for (int i = 0; i < 30000; i++)
        if (zeroed[i])
            return 3;
    for (int i = 0; i < 20; i += 2)
        free(blocks[i]);
    char *huge = malloc(3 << 20);
    huge[(3 << 20) - 1] = 1;
    free(huge);
    free(grown);
    grown = aligned_alloc(64, 640);
    return (size_t)grown % 64 != 0;
}
