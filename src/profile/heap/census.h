// A census: what the C library's allocator holds in a running process, counted from outside.
//
// Words:
//   block    memory that the program has and has not freed. The allocator knows its usable bytes,
//            which are up to 24 more than the program asked for
//   arena    a heap of the allocator: the main one in the break, others for threads
//   top      the free memory at the end of an arena, which grows and shrinks
//   binned   free memory elsewhere in an arena
//   cached   free blocks that a thread keeps for itself (tcache)
//   mapped   a large block in a mapping of its own
//   own      headers, tables of caches and other records of the allocator
//
// Invariant: of each arena, in use + binned + fast + cached + top + own = size.
#ifndef QUERN_PROFILE_HEAP_CENSUS_H
#define QUERN_PROFILE_HEAP_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/heap/leak_graph.h"

struct census_sum {
    uint64_t blocks, bytes;
};

struct census_arena {
    uint64_t address; // of its record
    bool is_main;
    uint64_t size; // bytes that it has from the kernel
    struct census_sum in_use, binned, fast, cached;
    uint64_t top, own;
    uint64_t largest_free;                  // binned
    uint64_t resident, resident_in_use;     // bytes of it in memory
    uint64_t resident_free, resident_other; // free: binned, fast, cached and top
};

struct census_class {
    uint64_t size; // usable bytes of a block
    uint64_t blocks;
};

// What the memory of the process is that is in RAM, in bytes.
struct census_resident {
    uint64_t in_use, free, own; // of the allocator, mapped blocks included
    uint64_t stacks, other_anonymous, files, shared;
    uint64_t huge; // of all these: in huge pages
};

struct census {
    int pid;
    char *program; // the process's short name
    size_t threads;
    char *allocator; // "glibc 2.36"
    uint64_t pause;  // nanoseconds that the process stood still, the longest of all stops
    unsigned stops;  // how often it was stopped
    bool is_partial; // a mapping was too large to be searched
    struct census_arena *arenas; // the main one first
    size_t arena_count;
    size_t caches; // threads that have one
    struct census_sum mapped;
    uint64_t mapped_size;         // bytes of their mappings
    struct census_class *classes; // by size
    size_t class_count;
    struct census_resident resident;
    struct leak_graph_block *blocks; // all that are in use; taken by the leak search
    size_t block_count;
};

static inline struct census_sum census_in_use(const struct census *census) {
    struct census_sum sum = census->mapped;
    for (size_t i = 0; i < census->arena_count; i++) {
        sum.blocks += census->arenas[i].in_use.blocks;
        sum.bytes += census->arenas[i].in_use.bytes;
    }
    return sum;
}

static inline uint64_t census_free_of(const struct census_arena *arena) {
    return arena->binned.bytes + arena->fast.bytes + arena->cached.bytes + arena->top;
}

#endif
