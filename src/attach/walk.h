// The parts of a census (attach/census.h) that walk through a copy of glibc's heap, and what they
// share. Each part returns false if the heap is not consistent, and says why in `problem`: a thread
// was in the middle of malloc, the program has damaged its heap, or this glibc is built otherwise.
#ifndef QUERN_ATTACH_WALK_H
#define QUERN_ATTACH_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/allocator.h"
#include "attach/glibc.h"
#include "attach/snapshot.h"
#include "profile/heap/census.h"

// A chunk that looks as if it were in use, and is not the program's.
enum known_kind { KNOWN_CACHED, KNOWN_FAST, KNOWN_CACHE };
struct known_chunk {
    uint64_t address, size;
    enum known_kind kind;
};

struct heap_range {
    uint64_t start, end;
};

struct heap_walk {
    const struct allocator *allocator;
    const struct snapshot *snapshot;
    struct census *census;
    struct known_chunk *known; // sorted by address while arenas are walked
    size_t known_count, known_found;
    struct heap_range *heaps; // of all arenas, and of mapped blocks
    size_t heap_count;
    uint64_t break_start; // where the main arena begins; 0: it has nothing
    char problem[160];
};

// "the heap is not consistent: …"; false.
bool walk_fail(struct heap_walk *walk, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A block of the program's.
void walk_add_block(struct heap_walk *walk, uint64_t start, uint64_t size);
void walk_add_heap(struct heap_walk *walk, uint64_t start, uint64_t end);

// ---- thread_caches.c ----

// Finds the caches of all threads, and adds what they hold to `known`.
bool walk_caches(struct heap_walk *walk);

// ---- arenas.c ----

// Walks all arenas chunk by chunk.
bool walk_arenas(struct heap_walk *walk);

// ---- mapped_chunks.c ----

// Finds blocks in mappings of their own, and compares them with the allocator's counters.
bool walk_mapped(struct heap_walk *walk);

#endif
