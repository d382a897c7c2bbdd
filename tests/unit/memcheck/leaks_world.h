// The world that the leak search sees, made by hand: memory at the addresses where targets have it,
// with its shadow, and stand-ins for what the engine, the allocator and the reports do.
#ifndef QUERN_TESTS_LEAKS_WORLD_H
#define QUERN_TESTS_LEAKS_WORLD_H

#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/leaks/leaks.h"
#include "tools/memcheck/target/leaks/search.h"

#define HEAP  0x201000000000ul
#define DATA  0x202000000000ul
#define CODE  0x203000000000ul // a table of functions, and the functions
#define STACK 0x204000000000ul
enum { SIZE = 64 << 20, DATA_SIZE = 128 << 10, STACK_SIZE = 1 << 20, BLOCKS = 400000, THREAD = 3 };

extern struct world {
    uint64_t starts[BLOCKS]; // of blocks, in the order in which they were made
    size_t block_count;
    struct heap_block declared[8], chunks[8];
    size_t declared_count, chunk_count;
    uint64_t registers[16];
    const char *heuristics, *resolution; // options, which leaks_start reads
    uint64_t hole;                       // a page of the heap that cannot be read
    uint64_t no_file;                    // a page beyond the end of a file
    struct leak_search result;           // of the last search
    struct loss records[1000];           // what it has found
} world;

// A world with nothing in it.
void world_begin(void);
// A search with the heuristics that the options name.
void world_check(enum leak_mode, enum leak_delta);
void world_empty_heap(void);
// A block that was made by this stack. The first five have frames; 1, 4 and 5 begin alike.
uint64_t world_block(size_t size, uint32_t stack);
void world_drop_last(void);
void world_point(uint64_t from, uint64_t to);
void world_search(void);
// What the last search has found; NULL: no such thing.
const struct loss *world_record(enum leak_kind kind, uint32_t stack);
uint64_t world_bytes(enum leak_kind kind);

#endif
