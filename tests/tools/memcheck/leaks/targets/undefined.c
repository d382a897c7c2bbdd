// Pointers in memory whose value is not known, or that must not be touched.
#include <valgrind/memcheck.h>

#include "target.h"

static void *volatile area[16];

static void make(void) {
    for (int i = 0; i < 6; i++)
        area[i] = calloc(10 + (size_t)i, 8);
    VALGRIND_MAKE_MEM_UNDEFINED(&area[1], 8);
    VALGRIND_MAKE_MEM_NOACCESS(&area[2], 8);
    VALGRIND_MAKE_MEM_UNDEFINED((char *)&area[3] + 7, 1);
    unsigned char bits[8] = {0, 0, 1};
    (void)VALGRIND_SET_VBITS(&area[4], bits, 8);
    void **outer = words(4);
    outer[0] = words(20);
    outer[1] = words(21);
    VALGRIND_MAKE_MEM_NOACCESS(&outer[1], 8);
    held[0] = outer;
    // Never written: not known to point anywhere.
    void **copy = malloc(64);
    held[1] = copy;
}
int main(void) {
    make();
    wipe();
    return 0;
}
