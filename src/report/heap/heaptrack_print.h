// A recording laid out as heaptrack_print does, for programs that read its output. For the names of
// names.h; people read `quern print`.
#ifndef QUERN_REPORT_HEAPTRACK_PRINT_H
#define QUERN_REPORT_HEAPTRACK_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "report/heap/file.h"

struct heaptrack_print {
    bool allocations, peaks, temporary, leaks; // the lists to print
    size_t places;                             // in each list
    size_t stacks;                             // of each place
    const char *function;                      // only stacks with this function; NULL: all
};

void heaptrack_print(FILE *out, const struct heap_file *file, const struct heaptrack_print *wanted);

#endif
