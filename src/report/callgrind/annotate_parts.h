// What the files of annotate share; nobody else includes it.
#ifndef QUERN_REPORT_ANNOTATE_PARTS_H
#define QUERN_REPORT_ANNOTATE_PARTS_H

#include "profile/costs/inclusive.h"
#include "report/callgrind/annotate.h"

// A function or a cycle as it is shown.
struct annotate_row {
    uint32_t function; // a cycle has the number after the last function's, the next one the next
    uint64_t weight;   // by which rows are sorted
    const uint64_t *values;
};

struct annotate_view {
    FILE *out;
    const struct cost_profile *profile;
    const struct annotate_options *options;
    struct cost_inclusive *inclusive;
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
// What calls cost, and one of their two ends. A call within a cycle has no cost here: it is part of
// what the cycle costs.
void annotate_call(const struct annotate_view *, const struct cost_call *, const uint64_t *values,
                   const char *mark, uint32_t end);
// NULL: it is not found.
FILE *annotate_open_source(const struct annotate_view *, const char *path);

// Instructions of the functions shown, with their costs and lines (annotate_assembly.c).
void annotate_assembly(const struct annotate_view *);

#endif
