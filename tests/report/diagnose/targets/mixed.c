// Half of what a place allocates is freed at once, the other half is kept for a while.
#include <stdlib.h>
static void *kept[64];
static void *get(void) { return malloc(64); }
int main(void) {
    for (int i = 0; i < 120000; i++) {
        void *block = get();
        void **place = i % 2 ? &block : &kept[i % 64];
        void *gone = *place;
        *place = block;
        free(gone);
    }
    return kept[0] == NULL;
}
