// Doubly linked lists, lost and held.
#include "target.h"

static void **list(int count) {
    void **first = words(2), **last = first;
    for (int i = 1; i < count; i++) {
        void **next = words(2);
        last[0] = next;
        next[1] = last;
        last = next;
    }
    return first;
}
static void make(void) {
    list(20);
    held[0] = list(5);
    void **middle = list(9);
    held[1] = (char *)middle[0] + 8;
}
int main(void) {
    make();
    wipe();
    return 0;
}
