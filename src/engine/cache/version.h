// Versions of a block (tool/insert.h): one for each set that the tool has met, and whether it is
// forced.
//
// A version is named by a small number; 0 is the usual one, of the empty set. When numbers run out,
// the version of all bits serves instead, until a flush frees them.
#ifndef QUERN_ENGINE_CACHE_VERSION_H
#define QUERN_ENGINE_CACHE_VERSION_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/tool/code.h"

enum { VERSIONS_MOST = 4096, NO_VERSION = VERSIONS_MOST };

extern bool versions_full;
void versions_reset(void); // with the cache flushed

// With the cache lock held.
unsigned version_number(uint64_t set, bool forced);
// No lock.
struct tool_version version_get(unsigned number);
unsigned version_find(uint64_t set, bool forced); // NO_VERSION: there is none yet

#endif
