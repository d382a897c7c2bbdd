// A recording in the formats of other programs.
//
// Words:
//   row      a stack with its sums; stacks that never allocated anything have none
//   weight   which of the sums a format that shows one number is about (--by)
//   folded   a stack as `main;work;inner`: outermost first, inlined functions by themselves. In
//            names a semicolon is written as a colon, and what cannot stand in a line as \xNN. A
//            stack whose outer part is missing begins with [cut short]
//
// One table each of formats and of weights: parser, help, manual and completion derive from them.
// Supervisor context.
#ifndef QUERN_REPORT_HEAP_EXPORT_H
#define QUERN_REPORT_HEAP_EXPORT_H

#include <stdio.h>

#include "profile/massif.h"
#include "report/heap_file.h"

struct heap_weight {
    const char *name;
    const char *help;
    const char *unit; // "bytes" or "blocks"
    size_t offset;    // in struct summary_site
};

extern const struct heap_weight heap_weights[];
extern const size_t heap_weight_count;

uint64_t heap_weight_of(const struct heap_weight *weight, const struct summary_site *site);

struct heap_export {
    struct heap_file *file;
    const struct heap_weight *weight;
    const struct massif *massif; // for formats that need it
};

struct heap_format {
    const char *name;
    const char *help;
    bool needs_massif;
    void (*write)(FILE *out, const struct heap_export *export);
};

extern const struct heap_format heap_formats[];
extern const size_t heap_format_count;

#endif
