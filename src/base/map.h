// Hash maps, for the supervisor's side: from keys to numbers.
//
// Words:
//   entry   what a key leads to. Entries are numbered from 0 in the order in which they come, so
//           that their owner keeps them in a vector (vector.h) and a number is a place in it
//   slot    a place in the hash table: the hash of an entry's key and the entry's number
//
// Three layers, each for those that the next one does not fit:
//   struct map            finds numbers by hash. The keys are the owner's: it walks the candidates
//                         of a hash and compares. For keys of several parts, and keys that stand in
//                         the entries anyway
//   struct map_integers   keeps the keys, 64-bit integers
//   struct map_texts      keeps copies of the keys, strings of bytes
//
//     struct map_walk walk = map_walk(hash);
//     for (uint32_t number; (number = map_next(&map, &walk)) != MAP_NONE;)
//         if (entries[number].key == key)
//             return number;
//     map_add(&map, hash);
//     *vector_push(entries, entry_count) = (struct entry){...};
//
// Invariants: open addressing with linear probing; the number of slots is a power of two, and at
// most half of them are in use. Single entries are never removed; map_clear removes all. All zero
// is an empty map. map_check aborts if an invariant does not hold.
//
// Hashes are compared before keys, so a walk rarely meets an entry of another key. A map holds
// fewer than 2^31 entries. Supervisor only: it allocates, and ends the program if memory is out.
#ifndef QUERN_BASE_MAP_H
#define QUERN_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE UINT32_MAX

struct map_slot {
    uint32_t hash;
    uint32_t entry; // number plus 1; 0: the slot is free
};

struct map {
    struct map_slot *slots;
    uint32_t slot_count; // a power of two, or 0
    uint32_t count;      // entries
};

// Where a search stands.
struct map_walk {
    uint32_t hash, at;
};

// Begins a search for the entries of a hash. The lower 32 bits count: use hash_integer, hash_add or
// hash_words (hash.h).
static inline struct map_walk map_walk(uint64_t hash) {
    return (struct map_walk){(uint32_t)hash, (uint32_t)hash};
}

// The next entry of that hash; MAP_NONE: there are no more.
static inline uint32_t map_next(const struct map *map, struct map_walk *walk) {
    if (!map->slot_count)
        return MAP_NONE;
    for (;;) {
        const struct map_slot *slot = &map->slots[walk->at++ & (map->slot_count - 1)];
        if (!slot->entry || slot->hash == walk->hash)
            return slot->entry - 1;
    }
}

// Adds the entry numbered map->count and returns that number. The caller has not found its key.
uint32_t map_add(struct map *map, uint64_t hash);
// Removes all entries and keeps the memory.
void map_clear(struct map *map);
void map_free(struct map *map);
// The memory that the map holds.
size_t map_bytes(const struct map *map);
// For tests.
void map_check(const struct map *map);

// ---- integers ----

struct map_integers {
    struct map map;
    uint64_t *keys; // by entry
    uint32_t count;
};

// The entry of a key; MAP_NONE: there is none.
uint32_t map_integers_find(const struct map_integers *map, uint64_t key);
// The entry of a key, a new one if *is_new.
uint32_t map_integers_add(struct map_integers *map, uint64_t key, bool *is_new);
void map_integers_clear(struct map_integers *map);
void map_integers_free(struct map_integers *map);

// ---- texts ----

struct map_text {
    char *bytes; // with a NUL behind them
    size_t size; // without it
};

struct map_texts {
    struct map map;
    struct map_text *keys; // by entry
    uint32_t count;
};

uint32_t map_texts_find(const struct map_texts *map, const char *bytes, size_t size);
uint32_t map_texts_add(struct map_texts *map, const char *bytes, size_t size, bool *is_new);
void map_texts_free(struct map_texts *map);

#endif
