// Grows, shrinks and grows again over several call paths; sizes are multiples of 16.
#include <stdlib.h>

static void *blocks[4000];

__attribute__((noinline)) static void *leaf(size_t size) {
    void *volatile block = malloc(size);
    return block;
}

__attribute__((noinline)) static void *odd(size_t size) {
    void *volatile block = leaf(size);
    return block;
}

__attribute__((noinline)) static void *even(size_t size) {
    void *volatile block = leaf(size);
    return block;
}

int main(void) {
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4000; i++)
            blocks[i] = i % 2 ? odd(160) : even(160);
        for (int i = 0; i < 4000; i++)
            free(blocks[i]);
    }
    return 0;
}
