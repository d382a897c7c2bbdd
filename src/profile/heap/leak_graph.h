// Which blocks of a heap can still be found by the program, as memcheck classifies them, from
// copies of its memory.
//
// Words:
//   root       memory that is searched for pointers without being pointed to: data, stacks,
//   registers pointer    an aligned word whose value lies inside a block; an *inner* pointer does
//   not point to
//              the first byte
//   leader     a lost block that no other lost block points to, or the first of a cycle of such
//
// Use: leak_graph_new with all live blocks, then leak_graph_root for each piece of root memory and
// leak_graph_heap for the memory of the blocks, in rising order of addresses; only the pointers are
// kept, so the program may go on afterwards. leak_graph_classify says the kind of each block.
//
// Kinds are memcheck's: reachable by pointers to first bytes from a root; possible if only an inner
// pointer leads there on the way; of the rest, leaders are definite and what they lead to is
// indirect. What a heuristic takes for a pointer to the first byte counts as one. Unlike memcheck,
// nobody here knows which words were never written: a value left over from earlier use counts.
// Supervisor context.
#ifndef QUERN_PROFILE_LEAK_GRAPH_H
#define QUERN_PROFILE_LEAK_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/findings/leaks.h"

struct leak_graph_block {
    uint64_t start, size;
    uint32_t stack;
    uint8_t kind;      // enum leak_kind, once classified
    uint8_t heuristic; // of a reachable one: the one it was found by plus 1; 0: none
    uint64_t indirect; // of a leader: bytes of what it leads to
    uint64_t root;     // of a reachable one: where the pointer is that leads to it; 0: not known
    uint32_t steps;    // from there on: 1 if it points to the block itself
};

// How heuristics look at memory.
struct leak_graph_memory {
    void *context;
    bool (*read)(void *context, uint64_t address, uint64_t *word);
    bool (*is_code)(void *context, uint64_t address);
};

struct leak_graph;

// Takes the array over; sorts it and drops blocks that overlap an earlier one. `heuristics` is a
// set of bits 1 << enum leak_heuristic.
struct leak_graph *leak_graph_new(struct leak_graph_block *blocks, size_t count,
                                  unsigned heuristics, const struct leak_graph_memory *memory);
// All blocks are libc's, with their usable sizes: pointers to the header of what follows a block
// count nowhere, because memory that was free before is full of them.
void leak_graph_ignore_headers(struct leak_graph *graph);
// Words of memory that is a root; those inside blocks are passed over. Registers have no address
// (0): blocks that only these hold have no root.
void leak_graph_root(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count);
// The same of memory in which libc's allocator keeps its own records: it points to where the header
// of the next block would be, which may be the last bytes of one in use. Such pointers do not
// count.
void leak_graph_libc(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count);
// Words of memory in which blocks lie. Addresses rise from call to call, and are multiples of 8.
void leak_graph_heap(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count);
// After all memory has been seen.
void leak_graph_classify(struct leak_graph *graph);
// The blocks by address.
const struct leak_graph_block *leak_graph_blocks(const struct leak_graph *graph, size_t *count);
void leak_graph_free(struct leak_graph *graph);

#endif
