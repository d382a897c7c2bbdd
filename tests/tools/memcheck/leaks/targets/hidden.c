// Pointers that are changed: tagged in low bits, masked, unaligned in memory, cut in two.
#include "target.h"

static char packed[64];

static void make(void) {
    held[0] = (void *)((uintptr_t)malloc(100) | 1);
    held[1] = (void *)~(uintptr_t)malloc(101);
    void *block = malloc(102);
    memcpy(packed + 3, &block, sizeof block);
    block = malloc(103);
    memset(packed + 16, 255, 16);
    memcpy(packed + 16, &block, 4);
    memcpy(packed + 28, (char *)&block + 4, 4);
    block = NULL;
}
int main(void) {
    make();
    wipe();
    return 0;
}
