// A recording in the formats of other programs.
//
// Words:
//   row      a stack with its sums; stacks that never allocated anything have none
//   weight   which of the sums a format that shows one number is about (--by)
//   folded   a stack as `main;work;inner`: outermost first, inlined functions as frames of their
//            own. A semicolon in a name becomes a colon, and characters that cannot stand in a line
//            become \xNN. A stack whose outer part is missing begins with [cut short]
//
// One table each of formats and of weights: parser, help, manual and completion derive from them.
// Supervisor context.
#ifndef QUERN_REPORT_HEAP_EXPORT_H
#define QUERN_REPORT_HEAP_EXPORT_H

#include <stdio.h>

#include "profile/heap/massif.h"
#include "report/heap/file.h"

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
    // For formats that need them.
    const struct massif *massif;
    struct heap_events *events;
};

struct heap_format {
    const char *name;
    const char *help;
    // What needs the page is not written here: view/html.h.
    enum heap_needs { NEEDS_SUMS, NEEDS_MASSIF, NEEDS_EVENTS, NEEDS_PAGE } needs;
    void (*write)(FILE *out, const struct heap_export *export);
};

// The events of a recording, kept until they can be written. Fed by a sink.
struct heap_events;
struct heap_events *heap_events_new(void);
void heap_events_free(struct heap_events *events);
void heap_events_sink(struct heap_events *events, struct heap_sink *sink);

extern const struct heap_format heap_formats[];
extern const size_t heap_format_count;

#endif
