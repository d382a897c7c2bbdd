// A library whose data holds blocks.
#include <stdlib.h>

static void *volatile first;
static void *volatile second[1000];
void plugin_hold(void);
void plugin_hold(void) {
    first = calloc(10, 8);
    second[777] = calloc(11, 8);
}
