// Lost blocks that several lost blocks lead to; a lost block that leads to a held one.
#include "target.h"

static void make(void) {
    void **common = words(4);
    void **a = words(5), **b = words(6), **c = words(7);
    a[0] = common;
    b[0] = common;
    c[0] = a;
    common[0] = words(8);
    void **kept = words(9);
    held[0] = kept;
    void **lost = words(10);
    lost[0] = kept;
    lost[1] = words(11);
    kept[0] = words(12);
}
int main(void) {
    make();
    wipe();
    return 0;
}
