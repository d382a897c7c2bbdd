// The parts of a leak search (leaks.h), and what they share. All other threads are stopped, so
// nothing here takes a lock or calls malloc: another thread may hold it. Memory comes from mmap.
//
// Words
//   block     a live block of the heap, a declared one, or a pool's chunk
//   number    of a block: slots of slabs and huge blocks in order of address, whether they hold a
//             live block or not, then those that the target has declared
//   pointer   an aligned word, addressable and defined, whose value lies inside a block
//   start pointer   one to the first byte of a block, or to what a heuristic takes for it
//   held      a block that was found through a pointer outside of blocks, its holder
//   leader    a lost block that no other lost block points to, or the first of a cycle of such
//   clique    what is reached from a leader and from none before it
//
// The search goes in three steps, and scans each block once:
//   1  from the roots along start pointers: reachable. Blocks that other pointers from there lead
//      to are marked possible on the way.
//   2  from those that are still possible, along all pointers: possible.
//   3  from each block left, in order of address: its clique. A leader that a later one leads to
//      joins it with its clique. Where the clique leads back to the leader, it is scanned again,
//      to count the cycle.
// Steps 1 and 2 are shared among threads. In step 3 the outcome depends on the order.
//
// The heap may be all the memory there is, so hardly anything is kept for each block: a byte, its
// state. Where a block is, its size and its stack stand in the heap's own notes (blocks.h), which
// do not change during the search. What is still to be scanned is kept while it waits only.
#ifndef QUERN_MEMCHECK_LEAKS_SEARCH_H
#define QUERN_MEMCHECK_LEAKS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/leaks/leaks.h"
#include "tools/memcheck/target/shadow/shadow.h"

// A block's state: its kind, and of a reachable one the heuristic plus 1 in the bits above.
enum {
    STATE_KIND = 3,
    STATE_HEURISTIC = 4,
    STATE_QUEUED = 32,     // of a possible one: it is scanned, or will be
    STATE_DROPPED = 64,    // it does not count: others were carved from it
    STATE_IN_CLIQUE = 128, // of the one that is being searched
};
enum { STATE_UNREACHED = LEAK_DEFINITE };

enum { NO_BLOCK = UINT32_MAX, MOST_BLOCKS = INT32_MAX };

// A block as it is looked at.
struct leak_block {
    uint64_t start, size;
    uint32_t number, stack;
};

struct leak_range {
    uint64_t start, end;
    bool guarded; // reading it may fault
    bool sparse;  // anonymous: pages that were never touched hold nothing
    bool bare;    // it has no shadow (io_uring's rings): its words count as known
};
struct leak_ranges {
    struct leak_range *at;
    size_t count, room;
};

// A leader that leads to others.
struct leak_leader {
    uint32_t number;
    uint32_t cycle;    // blocks, 0: none
    uint64_t indirect; // bytes of its clique
};

// What the target has declared.
struct leak_declared {
    struct leak_block block;
    struct leak_leader leader;
    bool is_dropped;
};

// A slab or a huge block, in order of address and number.
struct leak_shelf {
    uint32_t number; // of the first block
    bool is_huge;
    union {
        const struct slab *slab;
        const struct huge *huge;
    };
};

struct leak_blocks {
    uint8_t *states; // by number; changed by several threads at once
    uint32_t count;  // of all numbers
    struct leak_shelf *shelves;
    uint32_t shelf_count;
    uint32_t *directory;            // for every DIRECTORY numbers: the shelf of the first
    struct leak_declared *declared; // sorted by start; nothing overlaps
    uint32_t declared_count, declared_room, first_declared;
    uint64_t lowest, span; // of all blocks: lowest start, and bytes to the highest end
};

// The nearest blocks of each stack to a root, as one thread has found them.
struct leak_near {
    uint32_t stack, number;
    uint32_t steps; // pointers that lead there from what is held
    uint32_t held;  // what is held: place in search.held, plus 1; 0: the entry is free
};
struct leak_nearest {
    struct leak_near *at;
    size_t count, room; // a power of two
};

enum { LEAK_THREADS = 8 }; // at most

struct search {
    struct leak_blocks blocks;
    struct leak_ranges roots;  // memory to look for pointers in
    struct leak_ranges inner;  // memory of blocks that can be read
    struct leak_ranges tables; // where tables of virtual functions may lie
    struct leak_ranges code;   // where functions lie
    unsigned heuristics;       // a set: 1 << enum leak_heuristic
    struct search_list {
        void *at;
        size_t count, room;
    } held, leaders; // uint64_t (leaks/mark.c); struct leak_leader, in order
    struct leak_nearest nearest[LEAK_THREADS];
    uint64_t bytes_searched;
    int pagemap; // descriptor, -1: none
};

// ---- leaks/memory.c: memory for the search ----

void *search_map(size_t size); // zeroed, NULL: none
void search_unmap(void *memory, size_t size);
// Room for one more entry at the end; NULL: none.
void *list_add(struct search_list *, size_t entry_size);
void list_free(struct search_list *, size_t entry_size);
void ranges_free(struct leak_ranges *);
// The first range that ends after the address; NULL: none.
const struct leak_range *ranges_after(const struct leak_ranges *, uint64_t address);
bool ranges_contain(const struct leak_ranges *, uint64_t address);
// Finds out what there is to search. False: out of memory.
bool search_find_memory(struct search *);

// ---- leaks/blocks.c: the blocks ----

bool blocks_collect(struct leak_blocks *); // false: out of memory
void blocks_free(struct leak_blocks *);
// One that was declared. False: no room.
bool blocks_add(struct leak_blocks *, uint64_t start, uint64_t size, uint32_t stack);

// All blocks in order of address.
struct leak_walk {
    uint32_t shelf, slot, declared;
};
bool blocks_next(const struct leak_blocks *, struct leak_walk *, struct leak_block *);

static inline uint64_t block_end(const struct leak_block *block) {
    return block->start + (block->size ? block->size : 1);
}

static inline enum leak_kind state_kind(uint8_t state) {
    return state & STATE_KIND;
}

// The block that the address lies inside; a block without bytes counts as one byte.
bool blocks_find(const struct leak_blocks *, uint64_t address, struct leak_block *);

// The same in steps, for addresses between the lowest start and the highest end. Each step begins
// to read what the next one needs.
struct leak_lookup {
    const union cell *cell;  // NULL: none
    const struct slab *slab; // NULL: none
    uint32_t slot;
};
void lookup_cell(struct leak_lookup *, uint64_t address);
void lookup_slab(struct leak_lookup *, uint64_t address);
void lookup_slot(const struct leak_blocks *, struct leak_lookup *, uint64_t address);
bool lookup_block(const struct leak_blocks *, const struct leak_lookup *, uint64_t address,
                  struct leak_block *);

// A block by its number, in two steps as well.
void blocks_locate(const struct leak_blocks *, uint32_t number, struct leak_lookup *);
void blocks_get(const struct leak_blocks *, uint32_t number, const struct leak_lookup *,
                struct leak_block *);

// A word that the target knows the value of.
static inline bool word_is_known(uint64_t address) {
    return *(const uint64_t *)shadow_of(address) == 0;
}

// ---- leaks/scan.c: words of memory ----

// Called for each pointer in the order of scanning; `from` is the place, among the numbers that are
// scanned, of the block it lies in.
typedef void leak_visit(void *context, uint32_t from, uint64_t holder, uint64_t value,
                        const struct leak_block *block);
void scan_range(const struct search *, const struct leak_range *, leak_visit *, void *context);
enum { SCAN_MOST = 256 }; // numbers at once
void scan_blocks(const struct search *, const uint32_t *numbers, uint32_t count, leak_visit *,
                 void *context);

// ---- leaks/gone.c ----

// The table of thread-local blocks of each thread that a fork has left behind.
void gone_each_table(const struct leak_blocks *, leak_visit *, void *context);

// ---- leaks/heuristics.c ----

// The heuristic by which a pointer into a block counts as one to its start, -1: none.
int heuristic_of(const struct search *, const struct leak_block *, uint64_t pointer);

// ---- leaks/mark.c: steps 1 and 2 ----

struct leak_helpers;                     // threads that help
struct leak_helpers *mark_prepare(void); // before the others are stopped; NULL: none
bool mark_all(struct search *, struct leak_helpers *);
void mark_release(struct leak_helpers *); // after they go on
// Where a block is held.
void mark_holder(const struct search *, const struct leak_near *, struct loss *);

// ---- leaks/nearest.c ----

// Keeps it if there is none that is nearer, or as near and of a lower number.
void nearest_note(struct leak_nearest *, const struct leak_near *);
void nearest_free(struct leak_nearest *);

// ---- leaks/lost.c, leaks/cycles.c: step 3 ----

bool lost_cliques(struct search *); // false: out of memory
// The entry of a leader, NULL: it leads to nothing.
struct leak_leader *lost_leader(const struct search *, uint32_t number);
// How many blocks of a clique lead to its leader, itself included. Those of the clique stand in
// `members`, or, if that is NULL, have STATE_IN_CLIQUE; together they have so many words. 0: out of
// memory.
uint32_t cycle_count(const struct search *, uint32_t leader, const uint32_t *members,
                     uint32_t count, uint64_t words);

// ---- leaks/records.c: what is reported ----

void records_start(void); // reads options
// Whether two stacks are merged into one record.
bool records_same_stack(uint32_t first, uint32_t second);
// Merges the blocks into records, compared with those of the search before, in `result`, whose
// records are to be given to search_unmap (record_room). False: out of memory.
bool records_make(const struct search *, enum leak_delta, struct leak_search *result,
                  struct leak_totals *, size_t *record_room);

// ---- leaks/leaks.c: the blocks of the latest search's records ----

typedef void leak_block_visit(void *context, uint32_t record, const struct leak_block *block);
size_t leaks_record_count(void);
// Searches again, and visits the blocks of all records. False: out of memory.
bool leaks_each_block(leak_block_visit *, void *context);

#endif
