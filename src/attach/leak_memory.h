// The memory of a stopped process (freeze.h), or a copy of it (snapshot.h), as the leak search sees
// it: what belongs to the heap, what is a root, and reading it.
//
// Roots are all writable memory, except
//   - the heap: what the allocator has mapped, whether in use, free or its own records. libc's heap
//     is known by its layout (the break, arenas, chunks mapped by themselves). Of other allocators
//     it is the mappings in which blocks lie. Memory that the program itself has mapped is a root
//   - stacks below the stack pointer, and whole stacks of threads that have ended, except for what
//     libc itself needs there
//   - the recorder's data in the process
// Supervisor context.
#ifndef QUERN_ATTACH_LEAK_MEMORY_H
#define QUERN_ATTACH_LEAK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/freeze.h"
#include "attach/snapshot.h"
#include "profile/heap/leak_graph.h"

struct leak_range {
    uint64_t start, end;
};
struct leak_ranges {
    struct leak_range *at;
    size_t count;
};

// A piece of memory that somebody knows something of: the program has mapped it by itself, or it is
// own, that is no root.
typedef void leak_piece(void *context, uint64_t start, uint64_t end, bool is_own);

// What is known of the heap.
struct leak_heap {
    const void *context;
    bool is_libc; // the allocator is libc's
    void (*each_piece)(const void *context, leak_piece *piece, void *piece_context);
    const struct snapshot *copy; // where to read; NULL: the process, which stands still
};

struct leak_memory {
    int pid;
    const struct snapshot *copy; // NULL: the process is read
    int pagemap;                 // /proc/PID/pagemap, -1: none
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

// Reads the mappings and finds the roots. Blocks are sorted by address. False: the process cannot
// be read.
bool leak_memory_open(struct leak_memory *memory, int pid, const struct freeze *freeze,
                      const struct leak_heap *heap, const struct leak_graph_block *blocks,
                      size_t count);
// Hands roots, then the memory of all blocks, to a graph.
void leak_memory_scan(struct leak_memory *memory, const struct freeze *freeze,
                      struct leak_graph *graph);
// For heuristics; the context is the memory.
bool leak_memory_word(void *context, uint64_t address, uint64_t *word);
bool leak_memory_is_code(void *context, uint64_t address);
void leak_memory_close(struct leak_memory *memory);

#endif
