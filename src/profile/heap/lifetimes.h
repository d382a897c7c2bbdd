// How long the blocks of each stack live, and dhat's numbers of a stack except accesses: all bytes
// and blocks, the maximum, those at the peak of the heap and at the end.
//
// Words:
//   life     the time from the allocation of a block to its release, over all resizes; for a block
//            that is never freed, to the end
//   brief    a life shorter than a given time
//   own      a resized block stays with the stack that allocated it (dhat), or moves to the stack
//            that resized it (all other reports); dhat also counts each resize as a new block
//
// A sink. Supervisor context.
#ifndef QUERN_PROFILE_LIFETIMES_H
#define QUERN_PROFILE_LIFETIMES_H

#include "profile/heap/heap.h"

struct lifetimes_site {
    uint64_t blocks, bytes;    // all
    uint64_t live, live_bytes; // in the end
    uint64_t most, most_bytes; // maximum of bytes, and the blocks at that moment
    uint64_t peak, peak_bytes; // at the peak of the whole
    uint64_t ended;            // number of lives in the sum
    uint64_t life, longest;    // nanoseconds; the first is a sum
    uint64_t brief;            // number of brief lives
    uint64_t peak_seen;        // the number of the peak that `peak` and `peak_bytes` refer to
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

// With is_dhat, the sink uses the marks of blocks. So the owner of the blocks must call
// lifetimes_left for each live block before the end.
void lifetimes_sink(struct lifetimes *lifetimes, struct heap_sink *sink);
void lifetimes_left(struct lifetimes *lifetimes, const struct heap_block *block, uint64_t time);
void lifetimes_free(struct lifetimes *lifetimes);

#endif
