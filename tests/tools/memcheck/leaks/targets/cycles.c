// Rings of several sizes, one that holds another, one with a tail, one block that holds itself.
#include "target.h"

static void **ring(int count) {
    void **first = words(4), **last = first;
    for (int i = 1; i < count; i++) {
        last[0] = words(4);
        last = last[0];
    }
    last[0] = first;
    return first;
}
static void make(void) {
    ring(1);
    ring(2);
    ring(5);
    void **a = ring(3);
    a[1] = ring(4);
    void **b = ring(6);
    b[2] = words(2);
    held[0] = ring(3);
}
int main(void) {
    make();
    wipe();
    return 0;
}
