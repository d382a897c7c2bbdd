// A recording from different sides: as trees of calls, by library, by thread, by growth, by
// lifetimes.
//
// Words:
//   top-down    a tree from main inwards: what each function and all it calls hold
//   bottom-up   a tree from who wanted the memory outwards: through whom that came about
//   warm-up     the first quarter of the time, which growth leaves out
//
// All take what to show first from one weight (heap/export.h). Supervisor context.
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

// Which stacks keep growing: needs to know the end in advance, so the recording is read once
// before.
struct heap_growth;
// `file` is of the first reading, and stays until the growth is freed.
struct heap_growth *heap_growth_new(const struct heap_file *file);
void heap_growth_free(struct heap_growth *growth);
void heap_growth_sink(struct heap_growth *growth, struct heap_sink *sink);
void heap_view_growth(FILE *out, struct heap_growth *growth,
                      const struct heap_view_options *options);

// How long blocks live. `lifetimes` is of all of the file.
#define HEAP_VIEW_BRIEF 2000000 // nanoseconds: as exact as recordings are
void heap_view_lifetimes(FILE *out, const struct heap_file *file, const struct lifetimes *lifetimes,
                         const struct heap_view_options *options);

#endif
