// The caches to simulate: from options, else like this processor's.
#ifndef QUERN_CLI_CACHES_H
#define QUERN_CLI_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/options/options.h"

enum { CACHE_I1, CACHE_D1, CACHE_LL, CACHE_KINDS };

struct cache_shape {
    uint64_t size;
    uint32_t assoc, line;
};

// Reads "SIZE,ASSOC,LINE"; what is wrong with it is added to `reason`.
void cache_parse(const char *text, struct cache_shape *, struct text *reason);
// What the processor says of itself, with the changes that a simulation needs; these are told in
// `remarks`, a line each.
void caches_detect(struct cache_shape shapes[CACHE_KINDS], struct text *remarks);

#endif
