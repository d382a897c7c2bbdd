// Where glibc's malloc keeps its records, from 2.32 to 2.41: all offsets and flags in one place.
//
// Nothing here is taken on trust: the parts that read these records check that they agree with
// each other, and refuse otherwise. Supervisor context.
#ifndef QUERN_ATTACH_GLIBC_H
#define QUERN_ATTACH_GLIBC_H

#include <stdint.h>

// Versions as 100 * major + minor.
#define GLIBC_OLDEST 232 // lists of free blocks have mangled pointers from here on
#define GLIBC_NEWEST 241 // later ones have other thread caches

// ---- chunks ----

#define CHUNK_HEADER 16 // bytes in front of a block; the first 8 belong to the block before
#define CHUNK_LEAST  32 // a smaller one is a fence post
#define CHUNK_FENCE  16
#define CHUNK_ALIGN  16
#define CHUNK_FLAGS  7ull // in the size
#define PREV_IN_USE  1ull
#define IS_MAPPED    2ull
#define NOT_MAIN     4ull

struct chunk {
    uint64_t before; // size of the chunk before, if that is free
    uint64_t head;   // size and flags
};

static inline uint64_t chunk_size(const struct chunk *chunk) {
    return chunk->head & ~CHUNK_FLAGS;
}

// The pointers of single-linked lists are mangled with the place where they lie.
static inline uint64_t glibc_reveal(uint64_t place, uint64_t stored) {
    return place >> 12 ^ stored;
}

// ---- an arena's record (struct malloc_state) ----

enum { FAST_BINS = 10, BINS = 127 };
#define ARENA_NONCONTIGUOUS 2u

struct arena_record {
    int32_t mutex;
    uint32_t flags;
    int32_t have_fast;
    int32_t unused;
    uint64_t fast[FAST_BINS];
    uint64_t top;
    uint64_t last_remainder;
    uint64_t bins[2 * BINS]; // first and last of each list
    uint32_t binmap[4];
    uint64_t next, next_free;
    uint64_t attached;
    uint64_t system_size, system_most;
};
_Static_assert(sizeof(struct arena_record) == 2200, "struct malloc_state");

// The bin as the lists see it: a chunk whose links lie in the record.
static inline uint64_t arena_bin(uint64_t arena, unsigned number) {
    return arena + __builtin_offsetof(struct arena_record, bins) + number * 16 - CHUNK_HEADER;
}

// ---- a heap of an arena that is not the main one ----

#define HEAP_MOST (64ull << 20) // size at most, and alignment

struct heap_record {
    uint64_t arena;
    uint64_t before; // the heap before; 0: this is the arena's first
    uint64_t size;
    uint64_t accessible;
};

// ---- a thread's cache ----

enum { CACHE_LISTS = 64 };

struct cache_record {
    uint16_t counts[CACHE_LISTS];
    uint64_t lists[CACHE_LISTS];
};
// Size of the chunk that holds it: the larger one where 16 bytes were left over.
#define CACHE_CHUNK      0x290
#define CACHE_CHUNK_MOST 0x2a0

static inline uint64_t cache_chunk_size(unsigned list) {
    return CHUNK_LEAST + list * CHUNK_ALIGN;
}

// ---- parameters (struct malloc_par): the part from the counters of mapped blocks on ----

// Places of the counters before the field `base`, where the break began.
#define PARAMETERS_COUNT     36 // of mapped blocks, int; from 2.35 on
#define PARAMETERS_COUNT_OLD 32
#define PARAMETERS_MAPPED    16 // bytes of mapped blocks
// Behind it: number of lists of a cache, and the largest size that they take.
#define CACHE_LARGEST (24 + (CACHE_LISTS - 1) * CHUNK_ALIGN)

#endif
