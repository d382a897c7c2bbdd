// A call graph with exact costs, unfolded into a tree of calls for flame graphs.
//
// A call graph does not say along which path a function's callees were called: what a function
// spends is shared out among its callers in proportion. Totals of functions and of calls are exact.
#ifndef QUERN_REPORT_COST_TREE_H
#define QUERN_REPORT_COST_TREE_H

#include <stdio.h>

#include "profile/calltree.h"
#include "profile/costs.h"

// By one event. Finished.
struct calltree *cost_tree(const struct cost_profile *, unsigned event);
// For speedscope.app.
void cost_tree_speedscope(FILE *out, const struct calltree *, const char *name);

#endif
