// Writes massif.out files in Valgrind's grammar, for ms_print, massif-visualizer and `quern print`.
#ifndef QUERN_REPORT_MASSIF_OUT_H
#define QUERN_REPORT_MASSIF_OUT_H

#include <stdio.h>

#include "profile/heap/massif.h"
#include "profile/stacks/stacks.h"
#include "report/heap/names.h"

struct massif_out_options {
    const char *description; // the tool's options as given; NULL: none
    const char *command;
    enum massif_time time_unit;
    bool is_pages;
    double threshold; // percent
};

void massif_out(FILE *out, const struct massif *massif, const struct stacks *stacks,
                struct heap_names *names, const struct massif_out_options *options);

#endif
