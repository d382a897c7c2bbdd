// Blocks that were resized: what they hold, and who holds them.
#include "target.h"

static void make(void) {
    void **a = words(4);
    a[0] = words(10);
    a[3] = words(11);
    held[0] = realloc(a, 4000 * sizeof(void *));
    void **b = words(8);
    b[7] = words(12);
    held[1] = realloc(b, 2 * sizeof(void *)); // what b[7] held is lost
    void **c = words(3);
    held[2] = (void *)((uintptr_t)c ^ 1ul << 60);
    realloc(c, 300);
}
int main(void) {
    make();
    wipe();
    return 0;
}
