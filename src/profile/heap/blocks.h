// A table of live blocks, by any unique number (address, or block number).
//
// Open addressing, at most three quarters full, 64 bytes a slot; it grows with the number of live
// blocks and never shrinks. Pointers to blocks are good until the next insertion or removal.
//
// Not a map of base/map.h: every event of a recording looks a block up, and most of them add or
// remove one. Here key and block share a line of the processor's cache, and that line can be
// fetched before it is needed.
#ifndef QUERN_PROFILE_BLOCKS_H
#define QUERN_PROFILE_BLOCKS_H

#include "base/hash.h"
#include "profile/heap/heap.h"

struct blocks_slot {
    uint64_t key; // 0: empty
    struct heap_block block;
};

struct blocks {
    struct blocks_slot *slots;
    size_t room; // a power of two, or 0
    size_t count;
};

static inline size_t blocks_home(const struct blocks *blocks, uint64_t key) {
    return (size_t)hash_integer(key) & (blocks->room - 1);
}

// Large tables are not in the processor's cache, so callers prefetch a key before they look it up.
enum { BLOCKS_IN_CACHE = 4096 };
static inline bool blocks_need_fetching(const struct blocks *blocks) {
    return blocks->room > BLOCKS_IN_CACHE;
}
static inline void blocks_fetch(const struct blocks *blocks, uint64_t key) {
    __builtin_prefetch(&blocks->slots[blocks_home(blocks, key)], 1);
}

// The block of a key; NULL: none. Keys are not 0.
struct heap_block *blocks_find(struct blocks *blocks, uint64_t key);
// Adds a key that is not in the table; the new block is all zero.
struct heap_block *blocks_insert(struct blocks *blocks, uint64_t key);
// The same, if the key is not in the table; NULL: it is. Not zeroed.
struct heap_block *blocks_add(struct blocks *blocks, uint64_t key);
// Removes a block and copies it to *block. False: there is none.
bool blocks_remove(struct blocks *blocks, uint64_t key, struct heap_block *block);
void blocks_free(struct blocks *blocks);
// Aborts if an invariant does not hold. For tests.
void blocks_check(const struct blocks *blocks);

#endif
