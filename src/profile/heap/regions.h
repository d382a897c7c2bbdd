// The memory that a program itself has mapped, by address. Turns calls of mmap and munmap, which
// may cut any mapping, into regions that are mapped and unmapped in whole or in part.
//
// Invariants: pieces do not overlap and are sorted; a region that was cut in the middle is two
// pieces of one number. Memory grows with the number of pieces. Supervisor context.
#ifndef QUERN_PROFILE_REGIONS_H
#define QUERN_PROFILE_REGIONS_H

#include "profile/heap/heap.h"

struct regions {
    struct regions_piece {
        uint64_t start, end;
        uint64_t number;
        enum heap_region_kind kind;
        uint32_t stack;
    } * pieces;
    size_t count;
    uint64_t mapped; // regions so far
};

// Both call `tell` for what changes; `time` and `thread` are left to that. What is mapped over goes
// first. The size is not 0, and the end of the range no further than 2^64 - 1.
void regions_map(struct regions *regions, uint64_t start, uint64_t size, enum heap_region_kind kind,
                 uint32_t stack, void (*tell)(void *context, const struct heap_region *region),
                 void *context);
void regions_unmap(struct regions *regions, uint64_t start, uint64_t size,
                   void (*tell)(void *context, const struct heap_region *region), void *context);
void regions_free(struct regions *regions);

#endif
