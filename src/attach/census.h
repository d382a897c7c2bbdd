// Takes the census of a running process (profile/heap/census.h), and searches it for leaks. Nothing
// is loaded into the process: it stands still while its memory is copied, and everything else
// happens in the copy.
//
// Supervisor context.
#ifndef QUERN_ATTACH_CENSUS_H
#define QUERN_ATTACH_CENSUS_H

#include "attach/snapshot.h"
#include "profile/heap/census.h"

struct heap_range;

struct census_taken {
    struct census census;
    struct snapshot snapshot; // for names of mappings and stacks of threads
    struct heap_range *heaps;
    size_t heap_count;
};

// NULL, or why there is none; the caller frees the text. To be freed in either case.
char *census_take(struct census_taken *taken, int pid);
// Which blocks the program can still reach. `heuristics` is a set of bits 1 << enum leak_heuristic.
// Takes the census's blocks over; the caller frees the graph. NULL: the copy cannot be read.
struct leak_graph *census_leaks(struct census_taken *taken, unsigned heuristics);
// What a root that is no variable of a file lies in: "stack of thread 12". To be freed.
char *census_place(const struct census_taken *taken, uint64_t root);
void census_free(struct census_taken *taken);

#endif
