// The heap as the engine sees it: the recorder's events (wire/wire_heap.h) of programs into which
// nothing can be preloaded, and what only translated code can measure: the number of executed
// instructions, and the depth of stacks.
//
// How it works: calls.c replaces the allocator's functions, found by symbol, and hands out memory
// of room.c. pages.c follows system calls that map memory. ticks.c counts instructions and follows
// the stack pointer. All of them pass their events to tell.c. It writes them to the ring of the
// calling thread, as the preloaded recorder does, so that the supervisor sees no difference.
//
// Words
//   pages   mode of the tool: mapped pages count, the allocator is left alone (--pages-as-heap)
//   depth   bytes of a thread's stack that are in use, counted from where it began
//   moment  instructions and bytes of stacks, written before an event if the options ask for them
//
// Everything here runs in the target's process on the thread concerned, outside signal handlers.
#ifndef QUERN_TOOLS_HEAP_HEAP_H
#define QUERN_TOOLS_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/tool.h"
#include "wire/wire_heap.h"

struct heap_thread {
    struct wire_heap_ring *ring; // NULL: what the thread does is not recorded
    uint64_t limit;              // words that may be written before `head` must be read again
    uint32_t index;
    uint64_t *words;                 // the engine's counters of this thread
    uint64_t stack_start, stack_end; // 0, 0: not known
    uint64_t base;                   // stack pointer that it began with
    int64_t depth;
    struct heap_thread *next; // of all threads (ticks.c)
};

struct heap_options {
    bool pages;
    bool blocks;       // allocations are recorded
    bool instructions; // are counted
    bool stacks;       // are followed
    bool follow_children, follow_forks;
    unsigned depth; // frames of a stack
    unsigned admin; // bytes added for each block
};
extern struct heap_options heap_choices;

static inline struct heap_thread *heap_thread(void) {
    return tool_thread_state();
}

// ---- heap.c ----

// Whether an address lies in the dynamic linker.
bool heap_is_loader(uint64_t pc);

// ---- tell.c ----

// Makes the area, once and again in a forked child.
void tell_open(void);
void tell_thread_started(void);
void tell_thread_ended(void);
// Of the process (wire_heap.h).
void tell_provisional(void);
void tell_ended(void);
// Around a fork.
void tell_forking(void);
void tell_fork_made(void);
void tell_forked(void);

// The number of the target's stack, without the first frames.
uint32_t tell_stack(unsigned skipped);
void tell_allocated(uint64_t address, uint64_t size, uint32_t stack);
void tell_freed(uint64_t address);
// No other event may come between these two. To 0: the block is unchanged.
void tell_resize_began(uint64_t from);
void tell_resize_ended(uint64_t to, uint64_t size, uint32_t stack);
void tell_mapped(uint64_t start, uint64_t size, enum wire_heap_region, uint32_t stack);
void tell_unmapped(uint64_t start, uint64_t size);
void tell_mark(unsigned kind, const char *name, size_t size);
// WIRE_HEAP_ANSWERS words; false: there is no answer.
bool tell_ask(uint64_t *answers);
void tell_chunk(uint64_t start, uint64_t size);
// The stack of this thread is about to become smaller.
void tell_depth(uint64_t instructions, uint64_t stacks);
// What the supervisor has said last; 0 before there is an area.
struct tell_wishes {
    uint64_t peak, next_instructions, next_clock;
};
struct tell_wishes tell_wishes(void);

// ---- room.c ----

// Memory for the target; 0: none left. Its content is not zero unless asked for.
uint64_t room_allocate(size_t size, size_t alignment, bool zeroed);
// False: there is no such block.
bool room_free(uint64_t address, size_t *size);
bool room_find(uint64_t address, size_t *size);
// In place or elsewhere; 0: no memory, the block is as it was. There is such a block.
uint64_t room_resize(uint64_t address, size_t size, size_t alignment, bool zeroed);
void room_lock(void);
void room_unlock(void);

// ---- calls.c ----

extern struct tool_symbol calls_symbols[];
void calls_start(void);
// Whether an allocator has been found.
bool calls_found(void);

// ---- ticks.c ----

void ticks_block(struct tool_block *, uint64_t pc);
void ticks_instruction(struct tool_block *, const struct tool_insn *);
void ticks_block_end(struct tool_block *);
void ticks_thread_started(void);
void ticks_thread_ended(void);
void ticks_forking(void);
void ticks_fork_made(void);
void ticks_forked(void);
// Executed by all threads so far; bytes of all stacks, after this thread's has been looked at.
uint64_t ticks_instructions(void);
uint64_t ticks_stacks(void);
// Bytes of the heap, overhead included, have become more or less.
void ticks_heap_changed(int64_t bytes);

// ---- said.c ----

bool said_request(const uint64_t words[6], uint64_t *result);

// ---- pages.c ----

// The pages that the program began with.
void pages_begin(void);
void pages_before_system_call(long number, const uint64_t arguments[6]);
void pages_after_system_call(long number, const uint64_t arguments[6], long result);

#endif
