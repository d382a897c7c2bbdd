// Shows a profile of costs: totals, functions, who calls whom, and source lines with their costs.
// For `quern annotate` and `quern diff`.
#ifndef QUERN_REPORT_ANNOTATE_H
#define QUERN_REPORT_ANNOTATE_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/costs/costs.h"

enum annotate_tree { TREE_NONE, TREE_CALLERS, TREE_CALLEES, TREE_BOTH };

struct annotate_options {
    unsigned show[COST_EVENTS], show_count; // columns, in order
    unsigned sort;                          // the event that decides
    double threshold; // functions are shown until they make up this percentage
    bool inclusive, percents;
    bool sources;     // those of the functions shown
    bool assembly;    // likewise
    unsigned context; // lines around those with costs
    enum annotate_tree tree;
    const char *const *directories; // where else sources may be
    size_t directory_count;
};

void annotate(FILE *out, const struct cost_profile *, const struct annotate_options *);
// What has changed: functions by the difference, the largest first.
void annotate_diff(FILE *out, const struct cost_profile *before, const struct cost_profile *after,
                   const struct annotate_options *, size_t top);

#endif
