// Caches that note how their lines are used (--cacheuse): how often, and which bytes, until another
// line takes the place. Then the instruction that brought the line in is charged: 1000 divided by
// the number of uses, and the bytes that nobody has asked for. The uses of a line in the last level
// are those of the same line in the first, as they are known when it leaves that.
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

// `charges` are counters, COUNTS_ACCOST1 and those after it, of whoever refers.
enum use_outcome cache_use_refer(struct cache_use *, unsigned cache, uint64_t address,
                                 uint32_t size, uint64_t *charges, bool collects);
// All lines leave; they are charged once.
void cache_use_finish(struct cache_use *);

#endif
