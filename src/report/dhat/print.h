// Shows a dhat.out file as text: its program points, the heaviest first, or the tree of their
// stacks.
#ifndef QUERN_REPORT_DHAT_PRINT_H
#define QUERN_REPORT_DHAT_PRINT_H

#include <stdio.h>

#include "report/dhat/file.h"
#include "report/shared/paint.h"

// What points can be sorted by.
struct dhat_metric {
    const char *name, *help, *unit; // unit NULL: the file's for bytes
    uint64_t (*of)(const struct dhat_file *, const struct dhat_point *);
    bool adds_up; // over points, so that shares mean something
};
extern const struct dhat_metric dhat_metrics[];
extern const size_t dhat_metric_count;

struct dhat_print_options {
    const struct dhat_metric *by;
    bool as_tree;
    double threshold;          // percent: what holds less is left out of the tree
    size_t top;                // points in the list
    size_t callers;            // frames of each
    const struct paint *paint; // NULL: plain
};

void dhat_print(FILE *out, const struct dhat_file *, const struct dhat_print_options *);

#endif
