// Functions for --alloc-fn and --ignore-fn.
#include <stdlib.h>

static void *blocks[300];

__attribute__((noinline)) void *my_alloc(size_t size) {
    void *volatile block = malloc(size);
    return block;
}

__attribute__((noinline)) static void *wanted(size_t size) {
    void *volatile block = my_alloc(size);
    return block;
}

__attribute__((noinline)) void *unwanted(size_t size) {
    void *volatile block = my_alloc(size);
    return block;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 300; i++)
        blocks[i] = i % 3 ? wanted(320) : unwanted(640);
    // With an argument, those of unwanted(): Valgrind then shows them in trees, but nowhere else.
    for (int i = argc > 1 ? 0 : 1; i < 300; i += 3)
        blocks[i] = realloc(blocks[i], 1280);
    for (int i = 0; i < 300; i++)
        free(blocks[i]);
    return 0;
}
