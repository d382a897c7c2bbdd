// Versions of a block, for tools with shadow memory (docs/memcheck.md): which registers may hold
// undefined bits when it is entered, and whether its first instruction is followed whatever it
// uses.
//
// Vector, mask and x87 registers are *hidden units*: most code does not touch them, and it would be
// a pity to have versions of it for each that happens to be undefined. So exits never tell of them.
// A block that touches some looks at its head whether any of them is undefined, and goes on in the
// version for those; those that it overwrites before it reads them it just calls defined.
//
// A version is named by a small number; 0 is the usual one, for which all registers are defined. A
// version whose set is larger serves as well: when numbers run out, everything may be undefined,
// until a flush frees them.
#ifndef QUERN_ENGINE_CACHE_VERSION_H
#define QUERN_ENGINE_CACHE_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/tool.h"

struct version {
    uint64_t units; // bits by enum tool_unit
    bool forced;
};

enum { VERSIONS_MOST = 4096, NO_VERSION = VERSIONS_MOST };
#define HIDDEN_UNITS (~0ul << TOOL_UNIT_X87)

extern bool versions_full;
void versions_reset(void); // with the cache flushed

// With the cache lock held.
unsigned version_number(uint64_t units, bool forced);
// No lock.
struct version version_get(unsigned number);
unsigned version_find(uint64_t units, bool forced); // NO_VERSION: there is none yet
uint64_t version_hidden_units(void);                // of the calling thread, that are undefined
// For the registers of the calling thread that are undefined and not hidden, and for some more. Takes
// the cache lock where it must.
unsigned version_of_thread(bool forced, uint64_t more);

#endif
