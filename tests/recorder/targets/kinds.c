// Every function of the family, blocks of no size, and a huge one.
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *keep[600];
static int count;

static void hold(void *block) {
    keep[count++] = block;
}

int main(void) {
    for (int i = 0; i < 50; i++) {
        void *block = NULL;
        hold(malloc(0));
        hold(malloc(100));
        hold(calloc(7, 13));
        hold(realloc(NULL, 31));
        hold(memalign(64, 200));
        hold(aligned_alloc(256, 512));
        if (posix_memalign(&block, 128, 70) == 0)
            hold(block);
        hold(valloc(10));
        hold(strdup("a string"));
    }
    hold(malloc(100 << 20));
    if (calloc(1ul << 40, 1ul << 40) || malloc(1ul << 60))
        return 1;
    free(NULL);
    for (int i = 0; i < count; i++)
        free(keep[i]);
    return 0;
}
