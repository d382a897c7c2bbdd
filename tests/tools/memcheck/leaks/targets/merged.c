// The same lines reached in several ways: how records are merged.
#include "target.h"

static void __attribute__((noinline)) last(size_t size, int way) {
    held[10 + way] = calloc(1, size);
    malloc(size);
}
static void __attribute__((noinline)) third(size_t size, int way) {
    if (way & 1)
        last(size, way >> 1);
    else
        last(size + 1, way >> 1);
}
static void __attribute__((noinline)) second(size_t size, int way) {
    if (way & 1)
        third(size, way >> 1);
    else
        third(size + 1, way >> 1);
}
static void __attribute__((noinline)) first(size_t size, int way) {
    if (way & 1)
        second(size, way >> 1);
    else
        second(size + 1, way >> 1);
}
int main(void) {
    for (int way = 0; way < 16; way++)
        first(64, way);
    wipe();
    return 0;
}
