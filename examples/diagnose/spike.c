// A report is built in memory as a whole, once. Fixed: it is written piece by piece.
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { PIECES = 300, PIECE = 100000 };

static void report(void) {
    static char *pieces[PIECES];
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] = malloc(PIECE);
        memset(pieces[i], 'r', PIECE);
        if (IS_FIXED) {
            free(pieces[i]);
            pieces[i] = NULL;
        }
    }
    for (unsigned i = 0; i < PIECES; i++)
        free(pieces[i]);
}

int main(void) {
    char *base = malloc(1000000);
    memset(base, 1, 1000000);
    for (unsigned i = 0; still_within(1000); i++) {
        if (i == 300)
            report();
        free(malloc(100));
        rest(1000);
    }
    free(base);
    return 0;
}
