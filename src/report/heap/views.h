// A recording from different sides: as trees of calls, by library, by thread, by lifetimes.
//
// Words:
//   top-down    a tree from main inwards: what each function and all it calls hold
//   bottom-up   a tree from the function that allocates outwards: by whom it was called
//
// Each view sorts by one weight (heap/export.h). Supervisor context.
#ifndef QUERN_REPORT_HEAP_VIEWS_H
#define QUERN_REPORT_HEAP_VIEWS_H

#include "profile/heap/lifetimes.h"
#include "report/heap/export.h"
#include "report/shared/paint.h"

struct heap_view_options {
    const struct heap_weight *weight;
    double threshold;          // percent of the whole: less is left out of trees
    size_t top;                // rows of a list
    size_t callers;            // frames of a stack
    const struct paint *paint; // NULL: plain
};

void heap_view_top_down(FILE *out, const struct heap_file *file,
                        const struct heap_view_options *options);
void heap_view_bottom_up(FILE *out, const struct heap_file *file,
                         const struct heap_view_options *options);
void heap_view_libraries(FILE *out, const struct heap_file *file,
                         const struct heap_view_options *options);

// Sums by the thread that allocated. A summary whose "stacks" are threads: `sink` feeds it.
struct heap_threads {
    struct summary sums;
    struct heap_sink inner;
};
void heap_threads_sink(struct heap_threads *threads, struct heap_sink *sink);
void heap_threads_free(struct heap_threads *threads);
void heap_view_threads(FILE *out, const struct heap_file *file, const struct heap_threads *threads,
                       const struct heap_view_options *options);

// How long blocks live. `lifetimes` is of all of the file.
#define HEAP_VIEW_BRIEF RECORDING_TIME_SHARED
void heap_view_lifetimes(FILE *out, const struct heap_file *file, const struct lifetimes *lifetimes,
                         const struct heap_view_options *options);

#endif
