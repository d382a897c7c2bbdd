// How long the blocks of each stack live, and what dhat says of a stack without looking at
// accesses: all bytes and blocks, the most at a time, those at the peak of the heap and at the end.
//
// Words:
//   life     from the allocation of a block to its release, over all resizes; of a block that is
//            never freed, to the end
//   brief    a life shorter than a given time
//   own      a resized block may stay with the stack that allocated it (dhat), or go over to the
//            one that resized it (everybody else); dhat also counts each resize as a block of its
//            own
//
// A sink. Supervisor context.
#ifndef QUERN_PROFILE_LIFETIMES_H
#define QUERN_PROFILE_LIFETIMES_H

#include "profile/heap/heap.h"

struct lifetimes_site {
    uint64_t blocks, bytes;    // all
    uint64_t live, live_bytes; // in the end
    uint64_t most, most_bytes; // at a time; blocks at the moment with most bytes
    uint64_t peak, peak_bytes; // at the peak of the whole
    uint64_t ended;            // lives that are summed up
    uint64_t life, longest;    // nanoseconds; the first is a sum
    uint64_t brief;            // so many of them were
    uint64_t peak_seen;        // which peak `peak` and `peak_bytes` are of
};

struct lifetimes {
    bool is_dhat;                 // resized blocks stay where they were allocated, and count again
    uint64_t brief;               // nanoseconds: lives below are brief
    struct lifetimes_site *sites; // by stack
    size_t site_count;
    struct lifetimes_site total;
    uint64_t time, peak_time; // nanoseconds
    uint64_t peak_number;
};

// With is_dhat, marks of blocks are the sink's own; so live blocks have to be told from where the
// marks are kept, by lifetimes_left before the end.
void lifetimes_sink(struct lifetimes *lifetimes, struct heap_sink *sink);
void lifetimes_left(struct lifetimes *lifetimes, const struct heap_block *block, uint64_t time);
void lifetimes_free(struct lifetimes *lifetimes);

#endif
