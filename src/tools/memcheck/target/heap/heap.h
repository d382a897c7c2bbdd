// The allocator that replaces the target's own: blocks with red zones, a queue of freed blocks that
// are not given out again for a while, and for each block who made and freed it.
//
// Words
//   block       what the target has asked for, without its red zones
//   maker       the family of functions that made a block: it must be freed by the same
//   quarantine  the queue of freed blocks (--freelist-vol)
//   blocks.h has the words for how memory is divided.
//
// What is known about blocks lies outside target memory, where no stray write reaches it. Finding
// the block of an address takes constant time. Threads do not share a lock on the usual way through
// malloc and free. Any thread may call in here, from hooks and replaced functions.
#ifndef QUERN_MEMCHECK_HEAP_H
#define QUERN_MEMCHECK_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/tool.h"

enum heap_maker { HEAP_MALLOC, HEAP_NEW, HEAP_NEW_ARRAY, HEAP_CLIENT };
enum heap_state { HEAP_LIVE, HEAP_FREED };

struct heap_block {
    uint64_t start;
    size_t size; // as asked for
    enum heap_state state;
    enum heap_maker maker;
    uint32_t made_at, freed_at; // stacks.h; 0: not kept
    size_t alignment;
};

void heap_start(void);                                        // reads options
void heap_change_option(const char *name, const char *value); // while the program runs
void heap_forking(void);   // before a fork: other threads' changes are complete
void heap_fork_made(void); // in the parent, also when it failed
void heap_forked(void);    // in the child
void heap_thread_ended(void);

// The block that an address belongs to: inside it, or in the red zones around it; live ones before
// freed ones. False: none (or a freed one that is forgotten).
bool heap_find(uint64_t address, struct heap_block *);

// alignment 0: that of every block.
uint64_t heap_allocate(size_t size, size_t alignment, enum heap_maker, bool zeroed);
// What the function that frees a block says of it.
struct heap_claim {
    enum heap_maker maker;
    const char *function;  // that frees
    const char *functions; // that make and free such a block: "new/delete"
    size_t size;           // HEAP_ANY: not said
    size_t alignment;      // 0: that of every block; HEAP_ANY: not said
};
#define HEAP_ANY SIZE_MAX
void heap_free(uint64_t address, const struct heap_claim *);
uint64_t heap_resize(uint64_t address, size_t size);
uint64_t heap_resize_aligned(uint64_t address, size_t size, size_t alignment, bool zeroed);
size_t heap_size_of(uint64_t address); // of the live block that begins there, else 0

// Blocks that the target declares itself (MALLOCLIKE_BLOCK).
void heap_declare(uint64_t start, size_t size, size_t red_zone, bool zeroed);
bool heap_undeclare(uint64_t start, size_t red_zone);
bool heap_redeclare(uint64_t start, size_t old_size, size_t new_size, size_t red_zone);

// Chunks of pools. One counts as allocated, but neither as in use nor as freed: its pool's memory
// does. When it has ended it is remembered as freed blocks are; what was declared inside it then
// ends without being counted.
uint32_t heap_making_stack(void);  // the calling thread's, 0: not kept
uint32_t heap_freeing_stack(void); // the same, 0: nobody wants it
void heap_chunk_made(uint64_t start, size_t size);
void heap_chunk_freed(uint64_t start, size_t size, size_t red_zone, uint32_t made_at);
bool heap_undeclare_with_chunk(uint64_t start);

struct heap_totals {
    uint64_t allocations, frees, bytes; // bytes: all that was ever allocated
    uint64_t live_blocks, live_bytes;
};
struct heap_totals heap_totals(void);
// Gives counters to the heap of a thread, where others can see them too; before the first block. If
// it is not set, heaps keep their own.
struct ledger_heap; // wire/findings.h
extern struct ledger_heap *(*heap_make_counters)(void);

// While all other threads are stopped, without locks and malloc: live blocks, declared
// ones included, in order of address, from the first that starts at `from` or later, at most
// `room`. Returns how many.
size_t heap_list_live(uint64_t from, struct heap_block *blocks, size_t room);
// Whether the address lies in memory that the allocator gives blocks from: scanned block by block
// only. *end: up to where the answer is the same.
bool heap_owns(uint64_t address, uint64_t *end);

void on_malloc_usable_size(void); // the hook (entry.c)

// All that is replaced; filled in by heap_start.
extern struct tool_symbol heap_symbols[];

#endif
