// Singly linked lists: one held, one lost, one of which the middle is held.
#include "target.h"

static void **list(int count) {
    void **first = NULL;
    for (int i = 0; i < count; i++) {
        void **node = words(3);
        node[1] = first;
        first = node;
    }
    return first;
}
static void make(void) {
    held[0] = list(10);
    list(7);
    void **third = list(9);
    for (int i = 0; i < 4; i++)
        third = third[1];
    held[1] = third;
}
int main(void) {
    make();
    wipe();
    return 0;
}
