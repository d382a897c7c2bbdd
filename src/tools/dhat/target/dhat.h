// dhat: how heap blocks are used. Shared by the files of the tool.
//
// Words are those of wire/dhat_counts.h; docs/dhat.md tells how the parts fit.
//   slot    room for one block, with a note of its own for good; slots have powers of two for
//           sizes, and their addresses lead to their notes (heap.h)
//
// Invariants
//   - A note's size and end are 0 unless its block is live.
//   - Counters of single bytes are 0 wherever no live block has them kept.
//   - The lock guards what threads share of slots and points, and the header. Who holds it maps no
//     target memory: a fork takes it while it holds the engine's locks.
//
// The hooks of replaced functions use general registers only (slots.c, points.c, events.c,
// replaced.c, copies.c, strings.c, touches.c); the rest is called through tool_with_vectors from
// there.
#ifndef QUERN_DHAT_H
#define QUERN_DHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/tool.h"
#include "tools/dhat/target/heap.h"
#include "tools/shared/arguments.h"
#include "wire/dhat_counts.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

extern enum dhat_mode dhat_mode;
extern struct dhat_header *dhat_header;

// Free slots that a thread has at hand.
struct slot_store {
    uint32_t free, count; // as struct dhat_note has it: the first of them, and how many
    uint32_t next, end;   // numbers of slots that have never been used
};

enum { STORED_BITS = 20 }; // slots of this size and more are not stored

struct dhat_thread {
    uint64_t *words;              // together, instructions
    uint64_t told;                // so many of them have been added to the time
    struct dhat_log *log;         // NULL: there are too many threads
    uint64_t written, room_until; // events in it, and how many there may be
    struct dhat_event unlogged;   // where there is no log
    struct slot_store stores[STORED_BITS];
};

// The note for an address anywhere, NULL: none.
static inline struct dhat_note *note_of(uint64_t address) {
    if (address - HEAP_START >= HEAP_END - HEAP_START)
        return NULL;
    unsigned bits = heap_bits(address);
    if (bits < HEAP_LEAST || bits > HEAP_MOST)
        return NULL;
    return (struct dhat_note *)heap_note(address);
}

// Where the slot of an address in the heap begins.
static inline uint64_t slot_start(uint64_t address) {
    return address >> heap_bits(address) << heap_bits(address);
}

static inline struct dhat_note *note_at(unsigned bits, uint32_t number) {
    return (struct dhat_note *)(HEAP_NOTES + dhat_at_note(bits, number));
}

static inline void note_set_size(struct dhat_note *note, uint64_t start, uint64_t size) {
    note->size = size;
    note->end = size ? (start + size) << HEAP_PLACE_SHIFT : 0;
}

static inline uint64_t note_sum(const uint64_t lanes[DHAT_LANES]) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < DHAT_LANES; i++)
        sum += lanes[i];
    return sum;
}

static inline struct dhat_point_counts *point_at(uint32_t number) {
    return (struct dhat_point_counts *)(HEAP_NOTES + DHAT_AT_POINTS) + number;
}

static inline uint16_t *counters_of(uint64_t address) {
    return (uint16_t *)HEAP_COUNTERS + (address - HEAP_START);
}

// ---- file.c: the memory that the supervisor shares ----

void file_start(void);
void file_forking(void); // a copy for the child
void file_fork_made(void);
void file_forked(void);

// ---- points.c ----

void points_start(void);
// The point of the stack here; 0: none could be had.
uint32_t point_here(void);
void block_made(struct dhat_thread *, struct dhat_note *, uint64_t start);
void block_resized(struct dhat_thread *, struct dhat_note *, uint64_t size);
void block_gone(struct dhat_thread *, struct dhat_note *, uint64_t start);
void points_end(void); // folds everything

// ---- events.c: what changes sums and peaks ----

void events_start(void);
void events_thread_started(struct dhat_thread *);
void events_thread_ended(struct dhat_thread *);
void events_lock(void);
void events_unlock(void);
// With the lock: everything has been applied, and time goes on to now.
void events_tick(void);
// Without it. All but stamp and ticks is to be filled in before the end.
struct dhat_event *events_begin(struct dhat_thread *);
void events_end(struct dhat_thread *);
// An event that is no block's.
void events_add(uint32_t point, uint64_t size);

// A fork wants blocks and events as they belong together: a change of a block and its event stand
// between these two. No target memory is mapped between them.
extern _Atomic unsigned events_gate;
void events_wait_at_gate(struct dhat_log *);

static inline void begin_change(struct dhat_thread *thread) {
    if (!thread->log)
        return;
    __atomic_store_n(&thread->log->is_changing, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (UNLIKELY(__atomic_load_n(&events_gate, __ATOMIC_RELAXED)))
        events_wait_at_gate(thread->log);
}

static inline void end_change(struct dhat_thread *thread) {
    if (thread->log)
        __atomic_store_n(&thread->log->is_changing, 0, __ATOMIC_RELEASE);
}

void events_close_gate(void); // takes the lock
void events_open_gate(void);  // frees it
void events_forked(void);     // in the child: so it is there, nobody else is left

// ---- slots.c ----

// 0: no memory.
uint64_t slots_allocate(size_t size, size_t alignment, bool zeroed);
void slots_free(uint64_t address);
uint64_t slots_resize(uint64_t address, size_t size, size_t alignment, bool zeroed);
size_t slots_size_of(uint64_t address);
void slots_thread_ended(struct dhat_thread *); // gives back what it has at hand

// ---- touches.c: accesses ----

// What a function has read or written as a whole.
void touch_read(uint64_t address, size_t size);
void touch_write(uint64_t address, size_t size);
// While code is translated.
void touches_insert(struct tool_block *, const struct tool_insn *);

// ---- replaced functions ----

extern const struct tool_symbol replaced_copies[], replaced_strings[];
size_t replaced_start(struct tool_symbol *); // reads options; how many functions are replaced

static inline void replaced_return(uint64_t value) {
    tool_registers()[RESULT] = value;
}

// Instructions that the function stands for.
static inline void replaced_cost(uint64_t instructions) {
    ((struct dhat_thread *)tool_thread_state())->words[0] += instructions;
}

#endif
