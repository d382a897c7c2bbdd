// A call graph with exact costs, unfolded into a tree of calls for flame graphs.
//
// A call graph does not say along which path a function's callees were called: what a function
// spends is shared out among its callers in proportion to what their calls cost. So the own costs
// of a function, summed up over the tree, are those of the profile, but for rounding and for what
// is too small to be followed: that stands as "[smaller calls]" on the function that calls. All of
// the tree together is exactly what all functions have, whatever the file claims for calls.
//
// Functions that call each other in a circle are taken as one: what comes in through any of them is
// shared out among all, and each stands at the end of the shortest chain of calls to it.
#ifndef QUERN_REPORT_COST_TREE_H
#define QUERN_REPORT_COST_TREE_H

#include <stdio.h>

#include "profile/stacks/calltree.h"
#include "profile/costs/costs.h"

// By one event. Finished. Functions of one object and name in several files are told apart by the
// file's name in parentheses.
struct calltree *cost_tree(const struct cost_profile *, unsigned event);
// For pprof: all events, the given one in front.
void cost_tree_pprof(FILE *out, const struct cost_profile *, unsigned event);

#endif
