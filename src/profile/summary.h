// What a heap's history comes to: totals, the peak, and per stack what it allocated, held at the
// peak, allocated only for a moment, and never gave back.
//
// Words:
//   peak       the moment with most useful bytes (those asked for); the first, if there are several
//   temporary  an allocation whose release is the next thing its thread does with the heap
//   leaked     not released by the end of the run: a question, not yet an accusation
#ifndef QUERN_PROFILE_SUMMARY_H
#define QUERN_PROFILE_SUMMARY_H

#include "profile/heap.h"
#include "profile/stacks.h"

struct summary_site {
    uint64_t allocated, allocated_bytes; // resizes count as allocations of what they add
    uint64_t temporary;
    uint64_t live, live_bytes; // in the end: leaked
    uint64_t peak, peak_bytes; // at the peak of the whole
    uint64_t peak_seen;        // which peak these two are of
};

struct summary {
    struct stacks stacks;
    struct summary_site *sites; // by stack
    size_t site_count;
    struct summary_site total;
    uint64_t freed, resized;
    uint64_t peak_time, time; // nanoseconds
    uint64_t truncated;       // allocations whose stack is not whole
    uint64_t threads;
    uint64_t *latest; // by thread: its last event, if an allocation, that block's number
    size_t latest_count;
    uint64_t peak_number;
};

void summary_sink(struct summary *summary, struct heap_sink *sink);
void summary_free(struct summary *summary);
// Aborts if an invariant does not hold. For tests; after the end.
void summary_check(const struct summary *summary);

#endif
