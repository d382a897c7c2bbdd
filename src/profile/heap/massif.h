// Massif's view of a heap: a bounded number of snapshots of its size over time, some of them with
// the stacks that hold the memory.
//
// The rules are Valgrind's, so that the same run gives the same snapshots:
//   - after every event, a snapshot is taken if the minimum interval has passed
//   - before a release, if the heap exceeds the last peak by more than the allowed inaccuracy, a
//     peak snapshot is taken, and the old one becomes an ordinary one
//   - when the table is full, half of it is removed: always the one whose neighbours are closest in
//     time, except the first, the last and the peak. From then on, the shortest remaining interval
//     is the minimum interval (intervals between two that cannot be removed do not count)
// Only Quern: a program that ends at its peak gets a peak snapshot there, because its end is a
// release.
//
// Sizes: *useful* bytes are the requested ones; *extra* is heap-admin for each block and what
// rounding adds; *stacks* is the size of the threads' stacks, where known. In time unit B, time is
// the sum of all changes of these.
#ifndef QUERN_PROFILE_MASSIF_H
#define QUERN_PROFILE_MASSIF_H

#include "profile/heap/heap.h"

enum massif_time { MASSIF_MILLISECONDS, MASSIF_BYTES, MASSIF_INSTRUCTIONS };

struct massif_options {
    enum massif_time time_unit;
    bool no_heap;  // blocks do not count
    bool is_pages; // regions count, blocks do not
    unsigned heap_admin;
    unsigned max_snapshots; // even or odd; at least 10
    unsigned detailed_freq;
    double peak_inaccuracy; // percent
    // Whether to leave out allocations with this stack (--ignore-fn). NULL: none. Called once for
    // every stack.
    bool (*ignore)(void *context, uint32_t stack);
    void *ignore_context;
};

struct massif_snapshot {
    uint64_t time;
    uint64_t useful, extra, stacks;
    bool is_peak;
    bool is_detailed;
    // For a detailed snapshot: the stacks that hold memory or held it before (Valgrind counts the
    // latter among the places below the threshold), in no order.
    struct massif_share {
        uint32_t stack;
        uint64_t bytes;
    } * shares;
    size_t share_count;
};

struct massif;

struct massif *massif_new(const struct massif_options *options);
void massif_free(struct massif *massif);
void massif_sink(struct massif *massif, struct heap_sink *sink);
// Takes a detailed snapshot, whatever the rules say.
void massif_snapshot_now(struct massif *massif);
// Useful bytes, now.
uint64_t massif_bytes(const struct massif *massif);
// The snapshots in order.
const struct massif_snapshot *massif_snapshots(const struct massif *massif, size_t *count);
// A total up to this value, before this time, needs no snapshot. Neither ever decreases.
struct massif_gate {
    uint64_t total, time; // time: in the unit chosen
};
struct massif_gate massif_gate(const struct massif *massif);
// Aborts if an invariant does not hold. For tests.
void massif_check(const struct massif *massif);

#endif
