// Where memory of the target goes when the target does not say.
//
// Usually modules lie at the top of the low area, in reach of the code cache, and everything else
// at the top of the high area, which ends earlier for tools that have memory of their own. A tool that
// simulates caches has everything in one piece instead, each where it first fits from one address
// upwards: what meets in a cache goes by addresses, and these are Valgrind's, so that the figures
// are comparable to those of others and of other days. The stack alone is in the high area, where
// the lower half of its addresses is as it is there.
#ifndef QUERN_ENGINE_PLACE_H
#define QUERN_ENGINE_PLACE_H

#include "engine/space/space.h"

enum place {
    PLACE_PROGRAM, // a position-independent executable
    PLACE_MODULE,  // the loader, libraries, other code
    PLACE_LOW,     // MAP_32BIT: from 1 to 2 GiB, as the kernel does it
    PLACE_DATA,
    PLACE_BREAK,
    PLACE_STACK,
};

// In one piece: for the program's path, at the end of the stack.
#define PLACE_PATH_ROOM (2 * SPACE_PAGE)

// Both are to be said before anything is placed. below: where the high area ends at the latest.
void place_below(uintptr_t end);
void place_in_one_piece(void);
bool is_in_one_piece(void);

// Free room for that many bytes, a multiple of align, or 0; nothing is recorded.
uintptr_t place_pick(const struct space *space, enum place place, size_t size, size_t align);

// The same, in an area from which the place is taken top down: the place ends at `end` at the latest.
uintptr_t place_pick_below(const struct space *space, enum place place, size_t size, size_t align,
                           uintptr_t end);

// How far the break may grow.
size_t place_break_room(void);

#endif
