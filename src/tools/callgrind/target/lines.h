// Checks of cache lines in inserted code.
//
// A line is a piece of memory; its number is its address divided by its size. Inserted code deals
// with lines that are in the cache:
//   recent   of each set, the line used last, as lines_used says. Using it again changes nothing
//   known    lines that are in the cache, each at the place that its number gives; using one sets
//   its
//            stamp to the next tick of the clock and makes it the recent one of its set
// Every other access is a call of the simulation.
#ifndef QUERN_CALLGRIND_LINES_H
#define QUERN_CALLGRIND_LINES_H

#include "engine/tool.h"

enum lines_cache { LINES_CODE, LINES_DATA, LINES_CACHES };
// Before any code is translated: a line has 1 << bits bytes, at least 16; sets: a power of two.
void lines_set_shape(enum lines_cache, unsigned bits, uint64_t sets);
void lines_used(enum lines_cache, uint64_t line); // may be called from a fast call

enum { LINES_KNOWN = 2048 };
struct lines {
    uint64_t clock;
    struct known_line {
        uint64_t start; // address of its first byte; 0: none, or the line at address 0
        uint64_t *stamp;
    } known[LINES_CACHES][LINES_KNOWN]; // number % LINES_KNOWN
};
// The calling thread's; before it runs any code. Nothing is recent yet.
void lines_set_thread(struct lines *);

// While a block is translated: the function is called for an access to a line that is not known;
// `address` is the access's, or anything in a check of code.
void lines_insert_check(struct tool_block *, const struct tool_access *, tool_address_function *,
                        uint32_t argument);
void lines_insert_code_check(struct tool_block *, uint64_t line, tool_address_function *,
                             uint32_t argument);
// In block_end: the code that checks branch to.
void lines_end_block(struct tool_block *);
void lines_flushed(void); // the hook

#endif
