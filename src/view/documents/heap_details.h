// What a second reading of a recording gives, once the first has told when the run ends and which
// stacks matter: sums by thread, the heap over time by site, sizes and lifetimes of blocks.
// Supervisor context.
#ifndef QUERN_VIEW_HEAP_DETAILS_H
#define QUERN_VIEW_HEAP_DETAILS_H

#include "report/heap/filter.h"
#include "report/heap/views.h"

#define HEAP_DETAILS_STEPS  256
#define HEAP_DETAILS_SITES  10 // stacks that hold most at the peak; all others are one more
#define HEAP_DETAILS_POWERS 64

struct heap_details {
    struct heap_threads threads;
    uint64_t from, to; // the window
    uint64_t end;      // nanoseconds
    size_t site_count;
    uint32_t sites[HEAP_DETAILS_SITES];                         // stacks
    uint64_t held[HEAP_DETAILS_SITES + 1];                      // now
    uint64_t steps[HEAP_DETAILS_STEPS][HEAP_DETAILS_SITES + 1]; // at the end of each step
    size_t step;                                                // the next one
    uint64_t step_end;                                          // of that one, nanoseconds
    uint8_t *site_of;                                           // by stack: its place
    size_t stack_count;
    // By powers of two: [n] counts 2^(n-1) .. 2^n - 1, [0] nothing.
    struct heap_details_bin {
        uint64_t blocks, bytes;
    } sizes[HEAP_DETAILS_POWERS + 1];
    struct heap_details_bin lives[HEAP_DETAILS_POWERS + 1]; // of RECORDING_TIME_SHARED
};

// `first` is of the first reading, of the same window. Reads the file at path again. What is held
// over time is that of the whole run, everything else of blocks allocated in the window. NULL: the
// file cannot be read any more.
struct heap_details *heap_details_read(const char *path, const struct heap_file *first,
                                       const struct heap_filter *window);
void heap_details_free(struct heap_details *details);

#endif
