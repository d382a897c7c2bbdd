// Small blocks that stay are allocated between large numbers of blocks that go. Fixed: they come
// from a block of their own.
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { REQUESTS = 20000, PIECE = 3000 };

static char *pieces[REQUESTS];
static char *notes[REQUESTS];

static char *keep_note(unsigned number) {
    char *note = malloc(40);
    memset(note, 'n', 40);
    return note;
}

int main(void) {
    char *pool = IS_FIXED ? malloc(REQUESTS * 40) : NULL;
    for (unsigned i = 0; i < REQUESTS; i++) {
        pieces[i] = malloc(PIECE);
        memset(pieces[i], 'p', PIECE);
        notes[i] = IS_FIXED ? pool + 40 * i : keep_note(i);
    }
    while (still_within(600))
        rest(1000);
    for (unsigned i = 0; i < REQUESTS; i++)
        free(pieces[i]);
    while (still_within(1100)) {
        free(malloc(100));
        rest(1000);
    }
    return notes[7] == NULL;
}
