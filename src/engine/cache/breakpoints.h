// Where gdb wants to stop: addresses of instructions. Blocks are translated accordingly; target
// memory stays as it is.
//
// Changes need all other threads stopped and the cache lock; the caller drops the blocks concerned.
#ifndef QUERN_ENGINE_CACHE_BREAKPOINTS_H
#define QUERN_ENGINE_CACHE_BREAKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

enum { BREAKPOINTS = 4096 };

extern unsigned breakpoint_count;
// False: there is no room for more.
bool breakpoint_add(uint64_t pc);
bool breakpoint_remove(uint64_t pc); // false: there was none
bool breakpoint_find(uint64_t pc);
uint64_t breakpoint_get(unsigned index);

static inline bool breakpoint_at(uint64_t pc) {
    return breakpoint_count && breakpoint_find(pc);
}

#endif
