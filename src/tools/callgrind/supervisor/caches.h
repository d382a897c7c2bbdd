// The shapes of the simulated caches: those that the options give, else those of this processor,
// rounded to what the simulation can do.
#ifndef QUERN_TOOLS_CALLGRIND_CACHES_H
#define QUERN_TOOLS_CALLGRIND_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { CACHE_I1, CACHE_D1, CACHE_LL, CACHE_KINDS };

struct cache_shape {
    uint64_t size;
    uint32_t assoc, line;
};

// Reads "SIZE,ASSOC,LINE"; adds the problem to `reason` if it is invalid.
void cache_parse(const char *text, struct cache_shape *, struct text *reason);
// The processor's caches, changed where the simulation needs it. Adds one line per change to
// `remarks`.
void caches_detect(struct cache_shape shapes[CACHE_KINDS], struct text *remarks);

#endif
