// The parts of a leak search (leaks.h), and what they share. All other threads are stopped, so
// nothing here takes a lock or calls malloc: another thread may hold it. Memory comes from mmap.
//
// Words
//   block     a live block of the heap, a declared one, or a pool's chunk
//   pointer   an aligned word, addressable and defined, whose value lies inside a block
//   start pointer   one to the first byte of a block, or to what a heuristic takes for it
//   holder    where the pointer lies through which a block was found first
//   leader    a lost block that no other lost block points to, or the first of a cycle of such
//   clique    what is reached from a leader and from none before it
//
// The search goes in three steps, and scans each block once:
//   1  from the roots along start pointers: reachable. Blocks that other pointers from there lead
//      to are marked possible on the way.
//   2  from those that are still possible, along all pointers: possible.
//   3  from each block left, in order of address: its clique. A leader that a later one leads to
//      joins it with its clique.
// Steps 1 and 2 are shared among threads. In step 3 the outcome depends on the order.
#ifndef QUERN_MEMCHECK_LEAKS_SEARCH_H
#define QUERN_MEMCHECK_LEAKS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/memcheck/errors.h"
#include "tools/memcheck/leaks.h"
#include "tools/memcheck/shadow.h"

enum { LEAK_HEURISTICS = 4 };
enum leak_heuristic { LEAK_STDSTRING, LEAK_LENGTH64, LEAK_NEWARRAY, LEAK_INHERITANCE };

// A block's state: its kind, and of a reachable one the heuristic plus 1 in the bits above.
enum { STATE_KIND = 3, STATE_HEURISTIC = 4 };
enum { STATE_UNREACHED = LEAK_DEFINITE };

// 32 bytes for each block, its start in an array apart included.
struct leak_block {
    uint64_t size;
    uint32_t stack;
    uint8_t state; // changed by several threads at once
    bool declared; // by the target, maybe inside another block
    union {
        uint64_t indirect;       // of a leader: bytes of its clique
        uint64_t way;            // of a reachable block: see leaks_mark.c
        struct {                 // of an indirectly lost one
            uint32_t clique;     // its leader when it was found
            uint32_t pointed_at; // see leaks_lost.c
        };
    };
};

struct leak_range {
    uint64_t start, end;
    bool guarded; // reading it may fault
    bool sparse;  // anonymous: pages that were never touched hold nothing
};
struct leak_ranges {
    struct leak_range *at;
    size_t count, room;
};

// What is known of the blocks while the search goes on. Sorted by start; no two overlap.
struct leak_blocks {
    uint64_t *starts;
    struct leak_block *blocks;
    uint32_t count;
    uint64_t lowest, span; // of all blocks: lowest start, and bytes to the highest end
    // For each granule of an area with blocks: the number of the first block that starts in it or
    // later. An area's table has one entry more than it has granules.
    uint32_t **areas;
    size_t area_count;
    uint32_t *tables; // all of them
    size_t table_size;
    size_t room; // for blocks, while they are collected
};

struct leak_cycle {
    uint32_t leader, blocks;
};

struct search {
    struct leak_blocks blocks;
    struct leak_ranges roots;  // memory to look for pointers in
    struct leak_ranges inner;  // memory of blocks that can be read
    struct leak_ranges tables; // where tables of virtual functions may lie
    struct leak_ranges code;   // where functions lie
    unsigned heuristics;       // a set: 1 << enum leak_heuristic
    uint32_t *queue;           // room for all blocks
    uint64_t *set;             // in step 3: a bit for each block, for putting them in order
    struct leak_cycle *cycles; // by leader
    size_t cycle_count;
    uint64_t bytes_searched;
    int pagemap; // descriptor, -1: none
};

enum { NO_BLOCK = UINT32_MAX };

// ---- leaks_memory.c: memory for the search ----

void *search_map(size_t size); // zeroed, NULL: none
void search_unmap(void *memory, size_t size);
bool ranges_add(struct leak_ranges *, struct leak_range);
void ranges_free(struct leak_ranges *);
// The first range that ends after the address; NULL: none.
const struct leak_range *ranges_after(const struct leak_ranges *, uint64_t address);
bool ranges_contain(const struct leak_ranges *, uint64_t address);
// Finds out what there is to search. False: out of memory.
bool search_find_memory(struct search *);

// ---- leaks_blocks.c: the blocks, and finding one by address ----

bool blocks_collect(struct leak_blocks *);
bool blocks_index(struct leak_blocks *); // sorts out what overlaps; the index
void blocks_free(struct leak_blocks *);
// False: no room. Called with rising addresses by what lists blocks.
bool blocks_add(struct leak_blocks *, uint64_t start, uint64_t size, uint32_t stack, bool declared);
// The block that the address lies inside; a block without bytes counts as one byte.
uint32_t blocks_find(const struct leak_blocks *, uint64_t address);
// The same in steps, for addresses between the lowest start and the highest end.
// 1  Begins to read what the second step needs.
void blocks_fetch(const struct leak_blocks *, uint64_t address);
// 2  Blocks [*low, *high) may start at the address or before, and so does that before *low.
void blocks_narrow(const struct leak_blocks *, uint64_t address, uint32_t *low, uint32_t *high);
// 3  The last of these that does. NO_BLOCK: none.
uint32_t blocks_last_before(const struct leak_blocks *, uint64_t address, uint32_t low,
                            uint32_t high);
// 4  The address lies inside if it is below that.
static inline uint64_t blocks_end(const struct leak_blocks *blocks, uint32_t i) {
    uint64_t size = blocks->blocks[i].size;
    return blocks->starts[i] + (size ? size : 1);
}

static inline enum leak_kind block_kind(const struct leak_block *block) {
    return block->state & STATE_KIND;
}

// A word that the target knows the value of.
static inline bool word_is_known(uint64_t address) {
    return *(const uint64_t *)shadow_of(address) == 0;
}

// ---- leaks_scan.c: words of memory ----

// Called for each pointer in the order of scanning; `from` is the block it lies in, NO_BLOCK: none.
typedef void leak_visit(void *context, uint32_t from, uint64_t holder, uint64_t value,
                        uint32_t block);
void scan_range(const struct search *, const struct leak_range *, leak_visit *, void *context);
void scan_blocks(const struct search *, const uint32_t *numbers, uint32_t count, leak_visit *,
                 void *context);

// ---- leaks_heuristics.c ----

// The heuristic by which a pointer into a block counts as one to its start, -1: none.
int heuristic_of(const struct search *, uint32_t block, uint64_t pointer);

// ---- leaks_mark.c: steps 1 and 2 ----

struct leak_helpers;                     // threads that help
struct leak_helpers *mark_prepare(void); // before the others are stopped; NULL: none
bool mark_all(struct search *, struct leak_helpers *);
void mark_release(struct leak_helpers *); // after they go on
// How many pointers lead from the place that holds a reachable block to it.
unsigned mark_steps(const struct leak_block *);
// Where it is held.
void mark_holder(const struct search *, const struct leak_block *, struct loss_record *);

// ---- leaks_lost.c: step 3 ----

void lost_cliques(struct search *);

// ---- leaks_records.c: what is reported ----

void records_start(void); // reads options
// Merges the blocks into records, compared with those of the search before, in `result`, whose
// records are to be given to search_unmap (record_room). False: out of memory.
bool records_make(const struct search *, enum leak_delta, struct leak_search *result,
                  struct leak_totals *, size_t *record_room);

#endif
