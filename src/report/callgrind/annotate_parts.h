// What the files of annotate share; nobody else includes it.
#ifndef QUERN_REPORT_ANNOTATE_PARTS_H
#define QUERN_REPORT_ANNOTATE_PARTS_H

#include "report/callgrind/annotate.h"

// A function as it is shown.
struct annotate_row {
    uint32_t function;
    uint64_t weight; // by which rows are sorted
    uint64_t *values;
};

struct annotate_view {
    FILE *out;
    const struct cost_profile *profile;
    const struct annotate_options *options;
    uint64_t *inclusive; // by function and event
    struct annotate_row *rows;
    size_t row_count, shown;
    int widths[COST_EVENTS];
};

void annotate_rule(FILE *out);
// The names of the events, and what follows them.
void annotate_headings(const struct annotate_view *, const char *rest);
// Values in the columns of the events; 0 is a dot.
void annotate_cells(const struct annotate_view *, const uint64_t *values);
// A name may hold anything.
void annotate_name(FILE *out, const char *name);
void annotate_function_name(const struct annotate_view *, uint32_t number);
// NULL: it is not found.
FILE *annotate_open_source(const struct annotate_view *, const char *path);

// Instructions of the functions shown, with their costs and lines (annotate_assembly.c).
void annotate_assembly(const struct annotate_view *);

#endif
