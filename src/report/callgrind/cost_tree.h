// A call graph with exact costs, unfolded into a tree of calls for flame graphs.
//
// A call graph does not know along which path a function was called. So the costs of a function are
// divided among its callers, in proportion to the costs of their calls. The self costs of a
// function, summed up over the tree, are therefore those of the profile, except for rounding and
// for calls that are too small to follow: "[smaller calls]" below the caller stands for these. The
// total of the tree is exactly the total of all functions.
//
// Functions that call each other in a circle are treated as one: the costs that enter through any
// of them are divided among all, and each stands at the end of the shortest chain of calls to it.
#ifndef QUERN_REPORT_COST_TREE_H
#define QUERN_REPORT_COST_TREE_H

#include <stdio.h>

#include "profile/stacks/calltree.h"
#include "profile/costs/costs.h"

// The tree of one event, finished. If an object has functions of the same name in several source
// files, the file's name follows in parentheses.
struct calltree *cost_tree(const struct cost_profile *, unsigned event);
// For pprof: all events, the given one in front.
void cost_tree_pprof(FILE *out, const struct cost_profile *, unsigned event);

#endif
