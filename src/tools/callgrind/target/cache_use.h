// Caches that record how their lines are used (--cacheuse): how often, and which bytes, until the
// line is evicted. Then the instruction that loaded the line pays: 1000 divided by the number of
// uses, and the number of unused bytes. The uses of a line in the last level are those of the same
// line in the first level; they become known when the line leaves the first.
//
// Fast calls: general registers only.
#ifndef QUERN_TOOLS_CALLGRIND_CACHE_USE_H
#define QUERN_TOOLS_CALLGRIND_CACHE_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/call_counts.h"

struct cache_use; // of a thread: I1, D1, and LL behind both

enum use_outcome { USE_FOUND, USE_FOUND_LAST, USE_FOUND_NOWHERE };

struct cache_use *cache_use_new(const struct counts_cache shapes[3]);
void cache_use_free(struct cache_use *);

// `charges` are the counters COUNTS_ACCOST1 and following of the instruction that accesses memory.
enum use_outcome cache_use_refer(struct cache_use *, unsigned cache, uint64_t address,
                                 uint32_t size, uint64_t *charges, bool collects);
// All lines leave; they are charged once.
void cache_use_finish(struct cache_use *);

#endif
