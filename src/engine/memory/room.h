// Memory of the engine that makes room for the target: the code cache moves, the jump table is
// given up (layout.h).
//
// An indirect branch to code below 4 GiB reads the jump table at a place that follows from its
// destination. Before the piece of the table is there, that read has to fault. So the target must
// have no memory where the table would have the piece of some code of its, whichever comes first.
#ifndef QUERN_ENGINE_MEMORY_ROOM_H
#define QUERN_ENGINE_MEMORY_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/cache/block.h"

// What the cache has to do before the target has memory with these rights at [start, end).
struct room {
    bool move;                // from where it lies
    enum cache_lookup lookup; // at least
};
// With the space lock held.
struct room room_needed(uint64_t start, uint64_t end, int prot);
bool room_is_ready(uint64_t start, uint64_t end, int prot);

// Below the cache nothing is put unless the target asks for it: a target that runs past the end of
// its memory must not write there.
#define ROOM_GUARD 0x10000ul
// A place for the cache outside [start, end): 0 if there is none, else *size is its size. With the
// space lock held.
uint64_t room_for_cache(uint64_t start, uint64_t end, uint64_t *size);

// Keeps target and shadow away from what the engine has taken, or no longer; the target also from
// `guard` bytes below. With the space lock held for writing.
void room_take(uint64_t start, uint64_t end, uint64_t guard);
void room_give_back(uint64_t start, uint64_t end, uint64_t guard);

#endif
