// Allocations that cannot be had, and what errno says then.
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile size_t large = (size_t)1 << 60, most = SIZE_MAX;

static void show(const char *what, const void *block) {
    printf("%s: %s, errno %d\n", what, block ? "a block" : "none", errno);
    errno = 0;
}

int main(void) {
    show("malloc", malloc(large));
    show("calloc", calloc(most, 2));
    show("realloc", realloc(malloc(3), large));
    show("reallocarray", reallocarray(NULL, most, 3));
    show("memalign", memalign(64, large));
    show("aligned_alloc", aligned_alloc(64, large));
    show("valloc", valloc(large));
    show("realloc to nothing", realloc(malloc(4), 0));
    show("malloc of a little", malloc(10));
    return 0;
}
