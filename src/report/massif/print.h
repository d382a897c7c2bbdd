// A massif.out as ms_print shows it: a graph, a table of snapshots, and their trees.
#ifndef QUERN_REPORT_MASSIF_PRINT_H
#define QUERN_REPORT_MASSIF_PRINT_H

#include "report/massif/file.h"
#include "report/shared/paint.h"

struct massif_print_options {
    double threshold;          // percent: nodes below are folded
    unsigned width, height;    // of the graph, 4 to 1000
    bool peak_only;            // nothing but the size of the peak
    const char *arguments;     // shown in the head
    const struct paint *paint; // NULL: plain
};

void massif_print(FILE *out, const struct massif_file *file,
                  const struct massif_print_options *options);

#endif
