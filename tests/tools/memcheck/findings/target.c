// Addresses with names for the findings suite. Never run by it: tests name places in it.
#include <stdlib.h>

int table[16];
char *keep;

static inline __attribute__((always_inline)) int inner(const int *at) {
    return at[1] + 1; // inner
}

__attribute__((noinline)) int outer(const int *at) {
    return inner(at) * 3; // outer
}

__attribute__((noinline)) void *make(size_t size) {
    return malloc(size); // make
}

int main(int argc, char **argv) {
    int *block = make(40);              // call make
    keep = (char *)block;               // after make
    return outer(block) + outer(table); // call outer
}
