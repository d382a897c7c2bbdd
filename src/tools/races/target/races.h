// The detector of data races: what its parts share.
//
// Words
//   slot      the place of a thread in vector clocks; a thread that has ended leaves it to a later
//   one clock     a thread's count of releases; clocks of all slots make a vector clock (clocks.h)
//   segment   what a thread does between two releases, by number. A number stands for slot and
//   clock cell      4 bytes of shadow for 4 bytes of memory (shadow.h of the engine, one byte for
//   each):
//             which segments have accessed them. One segment is in the cell itself, several are a
//             node (cells.c), and memory that was accessed atomically is CELL_ATOMIC
//   sync      a place that threads synchronise by: its vector clocks (clocks.h)
//
// Nothing is recorded while there is one thread: all that comes later knows what it did.
#ifndef QUERN_RACES_H
#define QUERN_RACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/tool.h"
#include "tools/races/target/clocks.h"

#define RACES_SHADOW 0x2a0000200000ul

enum {
    ACCESS_READ = 1,
    ACCESS_WRITE = 2,
    ACCESS_ATOMIC = 4, // by an instruction that is
    ACCESS_MOST = 64,  // bytes that are looked at in one access
};

// What a function that has been called is to do when it returns.
struct races_return {
    uint64_t stack_pointer; // where its return address is
    void (*done)(const struct races_return *, uint64_t result);
    uint64_t words[3];
    bool is_allocation;
};
enum { RACES_RETURNS_WORD = 1 }; // of the thread's words: how many there are

struct races_lock {
    uint64_t address;
    uint32_t stack, count;
    bool writes, is_mutex;
};

struct races_memo {
    uint32_t old, bits, segment, made;
};

struct races_history; // history.c

enum {
    RACES_RETURNS = 16,
    RACES_PENDING = 8,
    RACES_LOCKS = 24,
    RACES_MEMOS = 1 << 12,
    RACES_HITS = 64
};

// A thread's state. Inserted code compares cells with the patterns.
struct races_thread {
    uint64_t read_pattern, write_pattern; // twice the cell of the segment at hand
    uint64_t read_mask;                   // the bits of two cells that matter to a read
    uint32_t byte_pattern;
    // Nodes by which the segment at hand has read all bytes of a cell, by their last bits.
    uint32_t hits[RACES_HITS];
    uint32_t segment; // 0: the next access begins one
    uint32_t slot, half;
    uint32_t number;   // as reports have it: no two threads have the same
    uint32_t handlers; // signal handlers that are running
    uint32_t creating; // stack of the call that creates a thread
    struct clock clock;
    uint64_t pending[RACES_PENDING]; // atomics that were read: to be acquired by the next access
    uint32_t pending_count, lock_count;
    struct races_return returns[RACES_RETURNS];
    struct races_lock locks[RACES_LOCKS];
    struct races_history *history;
    struct races_memo *memos; // RACES_MEMOS
};

_Static_assert(sizeof(struct races_thread) <= 4096, "inserted code reaches it");

static inline struct races_thread *races_thread(void) {
    return tool_thread_state();
}

extern bool races_has_threads;                  // there is or was a second one
void races_begin_threads(void);                 // the second thread is about to start
void races_set_patterns(struct races_thread *); // after the segment has changed
void races_released(struct races_thread *);     // the clock has gone on: the segment ends

// insert.c
void races_instruction(struct tool_block *, const struct tool_insn *);
void races_block_end(struct tool_block *);
void races_insert_module(uint64_t start, uint64_t end, const char *path);
void races_insert_unmapped(uint64_t start, uint64_t end);
extern uint64_t races_libc_start, races_libc_end; // its code
void races_replaced(struct tool_block *);
bool races_is_libc(uint64_t pc); // but for syscall(), which does what its caller wants
extern uint64_t races_syscall;   // where that is; 0: not known

// access.c: plain
void races_access(uint64_t address, uint64_t size, unsigned kind);
void races_take_pending(struct races_thread *);

// functions.c
extern const struct tool_symbol races_symbols[];
void races_returned(void *unused); // at the return of a function of the C library
void races_push_return(void (*done)(const struct races_return *, uint64_t), uint64_t a, uint64_t b,
                       uint64_t c);
void races_returns_allocation(void); // the function just noted allocates

// history.c: plain
struct races_event {
    uint64_t place; // the address, the size above it
    uint32_t segment;
    uint32_t stack; // with the kind of access above it
};
void history_start(void);
void history_thread(struct races_thread *);
void history_add(struct races_thread *, uint64_t address, unsigned size, unsigned kind);
// The latest event of the segment that touches the bytes by such an access.
bool history_find(uint32_t slot, uint32_t segment, uint64_t address, unsigned size, unsigned kinds,
                  struct races_event *);
static inline uint64_t event_address(const struct races_event *event) {
    return event->place & ((1ul << 56) - 1);
}
static inline unsigned event_size(const struct races_event *event) {
    return event->place >> 56;
}
static inline unsigned event_kind(const struct races_event *event) {
    return event->stack >> 30;
}
static inline uint32_t event_stack(const struct races_event *event) {
    return event->stack & ((1u << 30) - 1);
}

// conflicts.c: plain
enum verdict {
    VERDICT_UNKNOWN,
    VERDICT_RACE,
    VERDICT_ATOMIC, // it is how threads synchronise, or may be
};
enum verdict conflict_judge(uint64_t address, unsigned size, unsigned kind, uint32_t segment,
                            unsigned kinds);
void conflicts_start(void);

// blocks.c: heap blocks
struct races_block {
    uint64_t start, size;
    uint32_t stack, thread;
};
bool races_block_find(uint64_t address, struct races_block *);
void races_block_forked(void);
void races_block_malloc(void);
void races_block_calloc(void);
void races_block_realloc(void);
void races_block_reallocarray(void);
void races_block_free(void);
void races_block_memalign(void);
void races_block_posix_memalign(void);
void races_block_valloc(void);

#endif
