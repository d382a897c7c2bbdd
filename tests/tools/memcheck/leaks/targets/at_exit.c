// Blocks that are made and freed while the program ends.
#include "target.h"

static void *early;

static void on_exit_first(void) {
    free(early);
    held[1] = words(20);
    words(21);
}
static void __attribute__((destructor)) at_end(void) {
    free(held[0]);
    held[0] = NULL;
}
int main(void) {
    early = words(10);
    held[0] = words(11);
    atexit(on_exit_first);
    wipe();
    return 0;
}
