// Sizes of all kinds, freed and allocated again in a fixed random order.
#include <stdlib.h>

static void *blocks[500];

int main(void) {
    unsigned state = 7;
    for (int i = 0; i < 20000; i++) {
        state = state * 1103515245 + 12345;
        unsigned at = (state >> 16) % 500;
        if (blocks[at] && state % 3 == 0) {
            blocks[at] = realloc(blocks[at], 1 + (state >> 8) % 3000);
        } else {
            free(blocks[at]);
            blocks[at] = malloc((state >> 8) % 3000);
        }
    }
    for (int i = 0; i < 500; i++)
        free(blocks[i]);
    return 0;
}
