// Translated blocks and the memory they live in.
//
// Words:
//   block     the translation of one contiguous run of target code with one entry and many exits
//   exit      a place where a block is left; its record (struct link) says for where
//   linked    an exit that jumps straight to another block instead of leaving the cache
//   state     how to get the target's exact state back at a point of the translated code
//   checked   a block that compares the target's code with what was translated each time it is
//             entered, for pages where code and data that is written lie together
//
// Threads: look-ups take no lock; everything that changes blocks, links or tables holds the cache
// lock (cache_lock), taken inside the space lock where both are needed. Memory of blocks is reused
// only after a flush, for which all threads are stopped outside the cache.
#ifndef QUERN_ENGINE_CACHE_BLOCK_H
#define QUERN_ENGINE_CACHE_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/layout.h"

// What an exit is for.
enum exit_kind {
    EXIT_TO,         // continue at target; may be linked
    EXIT_SYSCALL,    // a syscall instruction; target is the pc after it
    EXIT_EMULATE,    // the instruction at target is done in C (run/emulate.c)
    EXIT_REQUEST,    // a client request; target is the pc after it
    EXIT_MODIFIED,   // a checked block found its code changed; target is its pc
    EXIT_BREAKPOINT, // int3; target is the pc after it
    EXIT_DEBUG,      // gdb has a breakpoint at target
    EXIT_SWITCH,     // on in another version of the block at target (insert_switch)
    EXIT_RAISED,     // a replaced function at target has raised a signal instead of returning
    EXIT_REPLACED,   // entry of a function that the engine performs; target is its pc
    EXIT_CALL,       // a call that a tool inserted; target is the pc, stub where to go on
};

struct inserted_call {
    void (*function)(void *);
    void *argument;
};

struct link {
    uint64_t target;
    uint32_t site;    // cache offset of the rel32 that is patched; 0: cannot be linked
    uint32_t stub;    // address of the stub where an exit that is not linked goes
    uint16_t version; // of the block that it leads to
    uint8_t kind;
    bool linked;
    struct block *from, *to;
    struct link *next_incoming;       // in to->incoming
    const struct inserted_call *call; // of an EXIT_CALL
};

// From which host offset on the target's state is to be read how. Sorted by host.
struct block_state {
    uint16_t host;    // offset from the block's code
    uint16_t guest;   // offset of the target instruction from block.pc
    uint16_t spilled; // registers whose values are in task.spill
    uint8_t kind;     // enum state_kind
    uint8_t bias;     // see STATE_BIAS_*
};
enum state_kind {
    STATE_CLEAN,        // an instruction begins here and all state is in place
    STATE_WITHIN,       // within an instruction; a fault is that instruction's
    STATE_LOOKUP,       // looking up self->jump_target; a fault means it is not in the table
    STATE_SYSCALL,      // at a system call that is not made yet, or to be made again
    STATE_CHECK,        // as CLEAN, and a fault is as a check that fails
    STATE_SYSCALL_DONE, // just after it; guest is the next instruction, rcx still to be set
};
// While a string instruction with an fs or gs operand runs, the pointer register holds its value
// plus the segment's base. Low bits: register + 1; STATE_BIAS_GS: gs rather than fs.
enum { STATE_BIAS_GS = 0x80 };

struct block {
    uint64_t pc;
    uint32_t guest_size;
    uint32_t code; // cache offset of the entry for indirect branches (restores rcx)
    uint32_t code_size;
    uint16_t direct_entry; // offset from code of the entry for links
    uint16_t state_count;
    uint32_t first_link, link_count;
    bool dead, checked;
    uint16_t version; // cache/version.h
    struct block_state *states;
    struct link *incoming;
    struct block *hash_next;
    struct block *page_next[2]; // lists of the blocks that touch the first / last page
};

// The cache lies where [start, end) is, within the first 2 GiB.
extern uint64_t cache_start, cache_end;
void cache_init(uint64_t start, uint64_t end);
void cache_lock(void);
void cache_unlock(void);
// In a fork child, whose only thread is the caller.
void cache_forked(void);

// That version of the block that begins at pc, or NULL. Without the lock it may miss a block.
struct block *block_find(uint64_t pc, unsigned version);
// The block whose code contains this cache address, or NULL. No lock; callable in signal handlers
// of a thread that is in the cache.
struct block *block_at(uint64_t address);
// The state that is in force at a cache address of the block.
const struct block_state *block_state_at(const struct block *, uint64_t address);

static inline bool cache_contains(uint64_t address) {
    return address - cache_start < cache_end - cache_start;
}

// With the cache lock held:
void block_publish(struct block *);
void block_publish_code(struct block *); // for block_at alone: it is run once
struct block *block_allocate(void);
struct block_state *block_states_allocate(unsigned count);
struct inserted_call *inserted_call_allocate(void);
void *block_memory(unsigned size); // as long as the blocks of today last
// Room for up to `most` consecutive link records, of which `used` are kept.
uint32_t link_begin(unsigned most);
void link_end(unsigned used);
struct link *link_get(uint32_t index); // no lock needed
void block_link(struct link *, struct block *to);
// Makes indirect branches to the block find it.
void block_enter_in_table(struct block *);

// ---- the jump table ----
// It consists of pieces, for a mebibyte of code each.
enum { TABLE_PIECE = 4 << 20 };
// Where the piece for the code at pc is, or would be; 0: pc is none of the table's.
uint64_t table_piece_place(uint64_t pc);
bool table_has_piece(uint64_t pc);
// Maps a piece. False if something is there.
bool table_add_piece(uint64_t pc);
// Unmaps one, from `from` on: its place, or 0 if there are no more. The cache must be empty.
uint64_t table_drop_piece(uint64_t from);
// Whether the cache or a piece of the table takes a part of [start, end). Plain, no lock.
bool cache_takes(uint64_t start, uint64_t end);
bool cache_takes_table(uint64_t start, uint64_t end); // the table alone

// Room for one translated block: hot code upwards from *hot, exit stubs below *cold.
// Returns false when the cache is full: flush.
bool cache_room(uint8_t **hot, uint8_t **cold);
void cache_commit(uint8_t *hot, uint8_t *cold);
// Drops every block that touches [start, end). Returns how many.
unsigned cache_invalidate(uint64_t start, uint64_t end);

// Drops everything, gates included. All other threads must be stopped outside the cache.
void cache_flush(void);
// After a flush: the cache goes there.
void cache_move(uint64_t start, uint64_t end);
// Changes with every flush: what was read before is stale then.
extern uint32_t cache_epoch;

// How indirect branches find their destination. It only ever goes up. Translations made before
// that are not valid afterwards: flush.
enum cache_lookup {
    LOOKUP_TABLE, // in the jump table: all code is below 4 GiB, or above NON_TABLE_END and seldom
                  // run
    LOOKUP_BOTH,  // code above 4 GiB in a table with keys: the branch tells the two apart
    LOOKUP_KEYS,  // everything in the table with keys
};
extern enum cache_lookup cache_lookup;

// System calls that are made in the cache, without a way through the dispatcher: by the low 16 bits
// of the number, 0: so, 1: not. All ones at first, and for good once cache_forbid_syscalls is
// called.
extern uint8_t *cache_syscall_table;
void cache_permit_syscall(long number);
void cache_forbid_syscalls(void);

// Added to a destination, its index and key in the look-up for versions other than 0.
uint64_t cache_version_key(unsigned version);

// Numbers for --stats.
extern struct cache_stats {
    unsigned long blocks, instructions, links, invalidated, flushes, indirect_misses;
} cache_stats;

#endif
