// An allocator that notes the length before what it gives out.
#include "target.h"

static void *noted(size_t size) {
    uint64_t *block = malloc(size + 8);
    block[0] = size;
    return block + 1;
}
static void make(void) {
    held[0] = noted(100);
    held[1] = noted(8);
    uint64_t *other = malloc(50);
    other[0] = 40; // not the length, not a divisor
    held[2] = other + 1;
    noted(33);
    void **deep = noted(64);
    deep[0] = noted(65);
    held[3] = deep;
}
int main(void) {
    make();
    wipe();
    return 0;
}
