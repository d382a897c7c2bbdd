// A parent is freed, its children are not.
#include "target.h"

static void make(void) {
    void **parent = words(4);
    for (int i = 0; i < 4; i++)
        parent[i] = words(2 + i);
    free(parent);
    void **kept = words(3), **child = words(20);
    kept[0] = child;
    child[0] = words(21);
    held[0] = kept;
    free(child);
}
int main(void) {
    make();
    wipe();
    return 0;
}
