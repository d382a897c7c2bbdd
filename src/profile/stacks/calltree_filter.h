// Parts of a call tree: only the stacks that are of interest, and of these only some frames.
//
// Words:
//   focus    only stacks with at least one of these functions count
//   ignore   stacks with any of these functions do not count
//   hide     these functions are left out of their stacks; what they cost stays with their callers
//   at       stacks begin (below) or end (above) at their outermost frame of these functions;
//            stacks without any do not count
#ifndef QUERN_PROFILE_CALLTREE_FILTER_H
#define QUERN_PROFILE_CALLTREE_FILTER_H

#include <stdbool.h>

#include "profile/stacks/calltree.h"

enum calltree_side { CALLTREE_BELOW, CALLTREE_ABOVE };

// Each array has a value for each function of the tree; NULL: it is not used.
struct calltree_filter {
    const bool *focus, *ignore, *hide, *at;
    enum calltree_side side; // of `at`
};

// Returns a new finished tree with at most node_max nodes. The given tree must be finished.
struct calltree *calltree_filtered(const struct calltree *tree,
                                   const struct calltree_filter *filter, size_t node_max);

#endif
