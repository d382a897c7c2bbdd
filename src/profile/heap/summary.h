// The sums of a heap's history: totals, the peak, and for each stack what it allocated, held at the
// peak, allocated temporarily, and never freed.
//
// Words:
//   peak       the moment with most useful (requested) bytes; the first, if there are several
//   temporary  an allocation whose release is its thread's next heap event
//   leaked     not released by the end of the run; not necessarily an error
#ifndef QUERN_PROFILE_SUMMARY_H
#define QUERN_PROFILE_SUMMARY_H

#include "profile/heap/heap.h"
#include "profile/heap/marks.h"
#include "profile/stacks/stacks.h"

struct summary_site {
    uint64_t allocated, allocated_bytes; // resizes count as allocations of what they add
    uint64_t temporary;
    uint64_t live, live_bytes; // in the end: leaked
    uint64_t peak, peak_bytes; // at the peak of the whole
    uint64_t mapped_bytes;     // of regions
    uint64_t peak_seen;        // the number of the peak that `peak` and `peak_bytes` refer to
};

struct summary_thread {
    int tid;
    char *name; // the last one; NULL: none known
};

// What the program has mapped itself.
struct summary_regions {
    uint64_t count, bytes; // all of them
    uint64_t live_bytes;   // in the end
    uint64_t peak_bytes, peak_time;
};

// What the kernel reported. Zero where there was no sample.
struct summary_resident {
    uint64_t samples;
    uint64_t peak_bytes, peak_time;
    uint64_t heap_peak_bytes; // at the last sample before the peak of the heap
    // Anonymous memory at the first sample, and its maximum. Zero where it was not reported.
    uint64_t first_anonymous, peak_anonymous;
    struct heap_sample last;
};

struct summary {
    struct stacks stacks;
    struct summary_site *sites; // by stack
    size_t site_count;
    struct summary_site total;
    uint64_t freed, resized;
    uint64_t peak_time, time; // nanoseconds
    uint64_t truncated;       // allocations whose stack is incomplete
    struct summary_regions regions;
    struct summary_resident resident;
    struct marks marks;
    uint64_t threads;
    struct summary_thread *thread_list; // [0] is not used
    size_t thread_room;
    uint64_t *latest; // by thread: the block's number if its last event was an allocation
    size_t latest_count;
    uint64_t peak_number;
};

void summary_sink(struct summary *summary, struct heap_sink *sink);
void summary_free(struct summary *summary);
// Aborts if an invariant does not hold. For tests; after the end.
void summary_check(const struct summary *summary);

#endif
