// Binary trees: held, lost, and one that lost its root and then a branch.
#include "target.h"

static void **tree(int depth) {
    void **node = words(2 + depth % 2);
    if (depth > 0) {
        node[0] = tree(depth - 1);
        node[1] = tree(depth - 1);
    }
    return node;
}
static void make(void) {
    held[0] = tree(4);
    tree(3);
    void **root = tree(5);
    held[1] = root[0];
    void **branch = root[1];
    branch[0] = NULL;
    free(root);
}
int main(void) {
    make();
    wipe();
    return 0;
}
