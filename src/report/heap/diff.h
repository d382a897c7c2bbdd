// What changed between two recordings, stack by stack.
//
// Stacks are the same if their functions are, by name: neither addresses nor source lines need to
// agree, so that two builds of a program can be compared. Supervisor context.
#ifndef QUERN_REPORT_HEAP_DIFF_H
#define QUERN_REPORT_HEAP_DIFF_H

#include <stdio.h>

#include "report/heap/export.h"

struct heap_diff_options {
    const struct heap_weight *weight;
    const struct heap_weight *other; // also summed up, and listed if the first has no changes; NULL
    size_t top;                      // stacks in each list
};

// The change of the whole, then the stacks that grew most and those that shrank most.
void heap_diff(FILE *out, const struct heap_file *before, const struct heap_file *after,
               const struct heap_diff_options *options);

// The same lists for values by stack from elsewhere, sorted by name, each name once
// (rows_lines_merge). How many stacks changed.
struct rows_line;
size_t heap_diff_lines(FILE *out, const struct rows_line *before, size_t before_count,
                       const struct rows_line *after, size_t after_count,
                       const struct heap_diff_options *options, const char *of);

#endif
