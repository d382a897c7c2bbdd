// Other trees made of a tree of calls: turned inside out, or without recursion.
#ifndef QUERN_PROFILE_CALLTREE_SHAPES_H
#define QUERN_PROFILE_CALLTREE_SHAPES_H

#include "profile/stacks/calltree.h"

// Bits.
enum calltree_shape {
    CALLTREE_INVERTED = 1, // from the innermost function outwards
    CALLTREE_MERGED = 2,   // a function that is on a path already does not begin a new level: what
                           // it does there counts at its first place
};

// A new finished tree of the same values, with at most so many nodes. The tree must be finished.
struct calltree *calltree_shaped(const struct calltree *tree, unsigned shape, size_t node_max);

#endif
