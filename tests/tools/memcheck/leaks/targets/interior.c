// Pointers to other places than the start: inside at several offsets, to the last byte, to the end.
#include "target.h"

static void make(void) {
    held[0] = (char *)malloc(100) + 1;
    held[1] = (char *)malloc(101) + 50;
    held[2] = (char *)malloc(102) + 101;
    held[3] = (char *)malloc(103) + 103;
    held[4] = (char *)malloc(104) - 1;
    void **chain = words(4);
    chain[1] = words(3);
    held[5] = (char *)chain + 8;
    void **deep = words(4);
    void **next = words(5);
    deep[0] = (char *)next + 3;
    next[0] = words(6);
    held[6] = deep;
}
int main(void) {
    make();
    wipe();
    return 0;
}
