// Makes other trees from a call tree (calltree.h): inverted, or without recursion. The original
// stays as it is.
#ifndef QUERN_PROFILE_CALLTREE_SHAPES_H
#define QUERN_PROFILE_CALLTREE_SHAPES_H

#include "profile/stacks/calltree.h"

// Bits.
enum calltree_shape {
    CALLTREE_INVERTED = 1, // from the innermost function outwards
    CALLTREE_MERGED = 2,   // a function that is already on the path begins no new level: it counts
                           // at its first place
};

// Returns a new finished tree of the same values, with at most node_max nodes. The given tree must
// be finished.
struct calltree *calltree_shaped(const struct calltree *tree, unsigned shape, size_t node_max);

#endif
