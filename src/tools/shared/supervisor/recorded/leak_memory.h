// The memory of a process that stands still (freeze.h), as the search for leaks sees it: which of
// it is the heap, which is a root, and reading it.
//
// What is a root: everything that can be written, but not
//   - the heap: what the allocator has mapped, whether in use, free or its own records. libc's is
//     known by its layout (the break, arenas, chunks of their own); of others, mappings in which
//     blocks lie. What the program itself has mapped is none of it
//   - stacks of threads below the stack pointer, and whole ones of threads that have ended, but for
//     what libc itself needs there
//   - what the recorder keeps in the process
// Supervisor context.
#ifndef QUERN_SUPERVISOR_LEAK_MEMORY_H
#define QUERN_SUPERVISOR_LEAK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/heap/leak_graph.h"
#include "tools/shared/supervisor/recorded/freeze.h"
#include "tools/shared/supervisor/recorded/source.h"

struct leak_range {
    uint64_t start, end;
};
struct leak_ranges {
    struct leak_range *at;
    size_t count, room;
};

struct leak_memory {
    int pid;
    int pagemap; // /proc/PID/pagemap, -1: none
    struct leak_mapping {
        uint64_t start, end;
        bool is_writable, is_code, is_private, is_anonymous, is_break, is_libc, is_ours, is_device;
    } * mappings;
    size_t mapping_count;
    struct leak_ranges roots;
    uint8_t *buffer;
    struct leak_page {
        uint64_t address; // 1: none
        bool is_there;
        uint64_t words[512];
    } * pages; // looked at by heuristics
};

// Finds out what there is. Blocks are sorted by address. False: the process cannot be looked at.
bool leak_memory_open(struct leak_memory *memory, int pid, const struct freeze *freeze,
                      const struct heap_source *source, const struct leak_graph_block *blocks,
                      size_t count);
// Hands roots, then the memory of all blocks, to a graph.
void leak_memory_scan(struct leak_memory *memory, const struct freeze *freeze,
                      struct leak_graph *graph);
// For heuristics; the context is the memory.
bool leak_memory_word(void *context, uint64_t address, uint64_t *word);
bool leak_memory_is_code(void *context, uint64_t address);
void leak_memory_close(struct leak_memory *memory);

#endif
