// Large blocks, hardly touched, and blocks held from their far ends.
#include "target.h"

static void make(void) {
    size_t count = 1ul << 20;
    void **large = calloc(count, 8);
    large[count - 1] = words(10);
    large[count / 2] = words(11);
    held[0] = large;
    void **lost = calloc(count, 8);
    lost[count / 3] = words(12);
    held[1] = malloc(20ul << 20);
    forget_times(lost, lost + count);
}
int main(void) {
    make();
    wipe();
    return 0;
}
