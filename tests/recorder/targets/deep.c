// Allocations at many depths of a recursion, deeper than the default of 30 frames.
#include <stdlib.h>

static void *blocks[100];

__attribute__((noinline)) static int down(int depth) {
    blocks[depth] = malloc(1600);
    int deepest = depth < 99 ? down(depth + 1) : depth;
    free(blocks[depth]);
    return deepest;
}

int main(void) {
    return down(0) != 99;
}
