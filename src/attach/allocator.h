// Finds glibc's malloc in a process that runs: its version, its main arena, its parameters.
//
// Nothing is looked up by symbol, because installed libraries have lost the symbols that matter.
// The main arena is the one place in the library's data where all lists of an arena's record lead
// back to it. Supervisor context.
#ifndef QUERN_ATTACH_ALLOCATOR_H
#define QUERN_ATTACH_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/glibc.h"
#include "attach/snapshot.h"

struct allocator {
    int pid;
    unsigned version; // 236; 0: not known (static programs)
    uint64_t main_arena;
    uint64_t data_start, data_end; // of the library, where the arena was found
};

// While the process runs. NULL, or why there is no census of it; the caller frees the text.
char *allocator_find(struct allocator *allocator, int pid);
// "glibc 2.36". To be freed.
char *allocator_text(const struct allocator *allocator);

// Whether no thread holds the lock of an arena. The process stands still. Fits snapshot_look.
bool allocator_is_quiet(void *allocator);

// What the allocator itself has counted of blocks in mappings of their own. False: not known.
bool allocator_mapped(const struct allocator *allocator, const struct snapshot *snapshot,
                      uint64_t break_start, uint64_t *blocks, uint64_t *bytes);

#endif
