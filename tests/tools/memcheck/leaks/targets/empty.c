// Blocks without bytes, held and lost; blocks too small for a pointer.
#include "target.h"

static void make(void) {
    held[0] = malloc(0);
    malloc(0);
    held[1] = calloc(0, 8);
    held[2] = malloc(1);
    malloc(7);
    char *seven = malloc(7);
    held[3] = seven + 6;
}
int main(void) {
    make();
    wipe();
    return 0;
}
