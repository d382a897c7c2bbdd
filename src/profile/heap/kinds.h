// Kinds of blocks: how tables find what they keep for a thread, a stack and a size.
//
// Words:
//   kind    what the blocks of one entry have in common: size, stack and thread. Owners that do not
//           tell threads apart leave the thread 0
//   entry   the owner's own structure. Its first member is its kind
//
// A table is a map (base/map.h) and the owner's array of entries. The entries stay with the owner,
// because recordings look up a kind for every event, and then use the entry at once: kind and entry
// are in one line of the processor's cache.
//
// Invariant: the map has as many entries as the array, in the same order. kinds_check aborts if
// not. Supervisor context.
#ifndef QUERN_PROFILE_KINDS_H
#define QUERN_PROFILE_KINDS_H

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"

struct kind {
    uint64_t size;
    uint32_t stack, thread;
};

static inline uint64_t kinds_hash(const struct kind *kind) {
    return hash_add(hash_add(0, kind->size), kind->stack | (uint64_t)kind->thread << 32);
}

// The number of the entry of a kind; MAP_NONE: there is none. `entry_size` is that of one entry.
static inline uint32_t kinds_find(const struct map *map, const void *entries, size_t entry_size,
                                  const struct kind *kind) {
    struct map_walk walk = map_walk(kinds_hash(kind));
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;) {
        const struct kind *known = (const void *)((const char *)entries + number * entry_size);
        if (known->size == kind->size && known->stack == kind->stack &&
            known->thread == kind->thread)
            return number;
    }
    return MAP_NONE;
}

// The number of a new entry for a kind that was not found; the caller appends the entry.
static inline uint32_t kinds_add(struct map *map, const struct kind *kind) {
    return map_add(map, kinds_hash(kind));
}

// For tests.
static inline void kinds_check(const struct map *map, const void *entries, size_t entry_size,
                               size_t count) {
    map_check(map);
    if (map->count != count)
        abort();
    for (size_t i = 0; i < count; i++)
        if (kinds_find(map, entries, entry_size,
                       (const void *)((const char *)entries + i * entry_size)) != i)
            abort();
}

#endif
