// Doubtful ways and certain ways to the same blocks, in both orders.
#include "target.h"

static void make(void) {
    void **a = words(10), **b = words(10), **c = words(10), **d = words(10);
    a[0] = (char *)b + 8;
    b[0] = c;
    held[0] = a;
    d[0] = b;
    held[5] = d;
    void **e = words(11), **f = words(11), **g = words(11);
    held[6] = (char *)e + 16;
    e[3] = f;
    f[3] = g;
    g[3] = e;
    void **h = words(12), **i = words(12);
    held[7] = (char *)h + 4;
    h[0] = i;
    held[8] = i;
    (void)c;
}
int main(void) {
    make();
    wipe();
    return 0;
}
