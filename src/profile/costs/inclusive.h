// What functions cost with all that they call, where functions may call each other in circles.
//
// A file says for each call what passed until it returned. In a circle of calls, the same
// instruction counts for each level of the recursion, so that sums of such calls exceed the
// program's total. Therefore the functions of a circle are also one thing, a cycle: its inclusive
// cost is what its members cost themselves, and what the calls cost that lead out of it. A member's
// own inclusive cost leaves out the calls within the cycle. No inclusive cost exceeds the total.
// This is KCachegrind's way, too.
#ifndef QUERN_PROFILE_INCLUSIVE_H
#define QUERN_PROFILE_INCLUSIVE_H

#include "profile/costs/costs.h"

struct cost_inclusive {
    const struct cost_profile *profile;
    uint32_t *cycle_of;   // by function: its cycle, from 1, the dearest first; 0: it is in none
    uint32_t cycle_count; // cycles have at least two members
    uint64_t *functions;  // by function and event
    uint64_t *cycles;     // by cycle and event; those of the first cycle come first
    uint64_t *cycles_own; // likewise, without the calls that lead out
    uint32_t *sizes;      // members of a cycle, in the same order
};

struct cost_inclusive *cost_inclusive(const struct cost_profile *);
void cost_inclusive_free(struct cost_inclusive *);

// One value for each event.
static inline const uint64_t *cost_inclusive_of(const struct cost_inclusive *inclusive,
                                                uint32_t function) {
    return inclusive->functions + (size_t)function * inclusive->profile->event_count;
}
static inline const uint64_t *cost_inclusive_cycle(const struct cost_inclusive *inclusive,
                                                   uint32_t cycle) {
    return inclusive->cycles + (size_t)(cycle - 1) * inclusive->profile->event_count;
}
static inline const uint64_t *cost_own_of_cycle(const struct cost_inclusive *inclusive,
                                                uint32_t cycle) {
    return inclusive->cycles_own + (size_t)(cycle - 1) * inclusive->profile->event_count;
}
// Whether a call stays within a function or a cycle, so that its cost is part of what is already
// counted.
static inline bool cost_is_within(const struct cost_inclusive *inclusive, uint32_t caller,
                                  uint32_t callee) {
    return caller == callee || (inclusive->cycle_of[caller] &&
                                inclusive->cycle_of[caller] == inclusive->cycle_of[callee]);
}

#endif
