// The summary of a heap's history as text: totals, then the stacks that matter most by what they
// held at the peak, by number of allocations, by temporary ones, and by what they never gave back.
#ifndef QUERN_REPORT_HEAP_TEXT_H
#define QUERN_REPORT_HEAP_TEXT_H

#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "report/heap/names.h"
#include "report/shared/paint.h"

struct heap_text_options {
    size_t top;                // stacks in each list
    size_t callers;            // frames of each stack
    const struct paint *paint; // NULL: plain
    uint64_t from;             // nanoseconds: where the part begins that is summed up
};

// Calls line for each line, without a newline. `names` knows the addresses of the summary's stacks.
void heap_text(const struct summary *summary, struct heap_names *names,
               const struct heap_text_options *options,
               void (*line)(void *context, const char *text), void *context);

// The totals, and what the program marked.
void heap_text_totals(const struct summary *summary, void (*line)(void *context, const char *text),
                      void *context);
// The functions of the program's own (shared/own.h) that hold most at the peak, a line each.
void heap_text_ending(const struct summary *summary, struct heap_names *names, size_t top,
                      void (*line)(void *context, const char *text), void *context);

// What is to be said of detail that was merged, to be freed; NULL: nothing.
char *heap_text_merges(const struct recording_merges *merges);

#endif
