// The memory that a recorded process shares with the supervisor: one area per process. The recorder
// makes it and sends it by WIRE_HEAP. It is part of the protocol of wire.h and of its version.
//
// Words:
//   area    a header, the table of stacks already sent, and the rings
//   ring    the records of one thread: a queue of 64-bit words with one writer and one reader.
//           Ring 0 belongs to no thread: a thread that cannot use its own ring takes its lock
//   record  a first word (clock << WIRE_HEAP_KIND_BITS | kind), then as many words as its kind has
//   clock   orders the records of all rings: the processor's time-stamp counter, or
//           CLOCK_MONOTONIC in nanoseconds where that counter does not run evenly
//
// How the order is kept: a record is written before its event can have consequences. A release is
// written before the block is given back, an allocation before the block is returned. So if one
// event can only happen after another, its clock is later, and it was written after the other could
// be seen. A reader notes the time, reads all rings, and takes only older records. None of these
// can depend on a record that it has not seen. It takes the rest in a later round, ordered by the
// clock again.
//
// The supervisor trusts nothing in the area: the target may have overwritten it.
#ifndef QUERN_WIRE_WIRE_HEAP_H
#define QUERN_WIRE_WIRE_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/wire_python.h"

#define WIRE_HEAP_VARIABLE "QUERN_RECORDER" // its value is "WIRE,OPTIONS", two descriptors

#define WIRE_HEAP_RINGS      4096
#define WIRE_HEAP_RING_WORDS 32768 // a power of two
// Levels of the table of stacks: each has four times as many slots as the one before.
#define WIRE_HEAP_LEVELS     6
#define WIRE_HEAP_LEVEL_BITS 12
#define WIRE_HEAP_FRAMES     256 // maximum of frames of a stack
// Maximum of an interpreter's frames behind them.
#define WIRE_HEAP_PYTHON_FRAMES 128
// Words of both.
#define WIRE_HEAP_STACK_WORDS                                                                      \
    (WIRE_HEAP_FRAMES + WIRE_HEAP_PYTHON_FRAMES * sizeof(struct python_frame) / sizeof(uint64_t))

// Slots of all levels before one, and of one.
#define WIRE_HEAP_LEVEL_START(level) (((1u << 2 * (level)) - 1) / 3 << WIRE_HEAP_LEVEL_BITS)
#define WIRE_HEAP_LEVEL_SIZE(level)  (1u << (2 * (level) + WIRE_HEAP_LEVEL_BITS))
#define WIRE_HEAP_STACKS             WIRE_HEAP_LEVEL_START(WIRE_HEAP_LEVELS)

#define WIRE_HEAP_KIND_BITS 5

enum wire_heap_kind {
    WIRE_HEAP_ALLOCATED = 1,    // address, size, stack
    WIRE_HEAP_FREED = 2,        // address; written before the block is given back
    WIRE_HEAP_RESIZE_BEGAN = 3, // address; always followed by RESIZE_ENDED in the same ring
    // new address (0: failed, the block is as it was; WIRE_HEAP_RELEASED: freed), size, stack
    WIRE_HEAP_RESIZE_ENDED = 4,
    // id | count << 32 | truncated << 48 | frames << 49, then the pcs, innermost first, and frames
    // (struct python_frame)
    WIRE_HEAP_STACK = 5,
    WIRE_HEAP_THREAD = 6, // thread id: from here on the ring is this thread's
    // address, length, stack | kind << 32: memory that the program itself has mapped
    WIRE_HEAP_MAPPED = 7,
    WIRE_HEAP_UNMAPPED = 8, // address, length; written before the memory is unmapped
    WIRE_HEAP_NAME = 9,     // ring of the thread, then its name: 16 bytes, zeros at the end
    WIRE_HEAP_SAMPLE = 10,  // bytes in memory, minor page faults, major ones, anonymous bytes
    // instructions executed by the process so far, bytes of its stacks: valid from here on
    WIRE_HEAP_MOMENT = 11,
    WIRE_HEAP_DEPTH = 12, // the same; the stack is about to shrink
    // enum wire_heap_mark | bytes of the name << 32, then the name in whole words
    WIRE_HEAP_MARK = 13,
    WIRE_HEAP_ASKED = 14, // number: write the ring's `answers` as of here
    WIRE_HEAP_CHUNK = 15, // address, size: the block serves a custom allocator of the program
    WIRE_HEAP_CODE = 16,  // bytes of a struct python_code, then these in whole words
};

enum wire_heap_mark {
    WIRE_HEAP_MARKER = 0,
    WIRE_HEAP_SCOPE_BEGAN = 1, // of this thread
    WIRE_HEAP_SCOPE_ENDED = 2, // the one that began last
    WIRE_HEAP_SNAPSHOT = 3,
};

#define WIRE_HEAP_NAME_MAX 64 // bytes of a mark's name

// The answer to WIRE_HEAP_ASKED: numbers of the process, then of the ring's thread.
enum wire_heap_answer {
    WIRE_HEAP_LIVE_BYTES,
    WIRE_HEAP_LIVE_BLOCKS,
    WIRE_HEAP_PEAK_BYTES,
    WIRE_HEAP_TOTAL_BYTES,
    WIRE_HEAP_TOTAL_BLOCKS,
    WIRE_HEAP_RELEASES,
    WIRE_HEAP_THREAD_BYTES,
    WIRE_HEAP_THREAD_BLOCKS,
    WIRE_HEAP_ANSWERS,
};

enum wire_heap_region {
    WIRE_HEAP_ANONYMOUS = 0,
    WIRE_HEAP_FILE = 1,
    WIRE_HEAP_BREAK = 2,
    WIRE_HEAP_MOVED = 3, // the kind of the ring's last UNMAPPED
};

#define WIRE_HEAP_RELEASED 1

enum wire_heap_state {
    WIRE_HEAP_FREE = 0,
    WIRE_HEAP_USED = 1,
    WIRE_HEAP_ENDED = 2, // the thread has ended; free again once it is drained
};

enum wire_heap_clock { WIRE_HEAP_CLOCK_TSC = 1, WIRE_HEAP_CLOCK_MONOTONIC = 2 };

// Invariant (wire_heap_ring_check): head <= tail <= head + WIRE_HEAP_RING_WORDS. The writer alone
// moves tail, the reader alone moves head; neither goes back.
struct wire_heap_ring {
    _Atomic uint64_t tail;              // words ever written
    _Atomic uint32_t state;             // enum wire_heap_state
    uint64_t own;                       // address of the recorder's own data for this ring
    _Alignas(64) _Atomic uint64_t head; // words ever taken, by the supervisor
    // Low half of head, for the writer that waits for room (a futex).
    _Atomic uint32_t taken;
    _Atomic uint32_t waiting;
    _Atomic uint32_t answered; // number of the last question answered; a futex
    _Atomic uint64_t answers[WIRE_HEAP_ANSWERS];
    _Alignas(4096) uint64_t words[WIRE_HEAP_RING_WORDS];
};

// For tests, with writer and reader at rest: whether the invariant holds.
static inline bool wire_heap_ring_check(const struct wire_heap_ring *ring) {
    uint64_t head = atomic_load(&ring->head), tail = atomic_load(&ring->tail);
    return head <= tail && tail - head <= WIRE_HEAP_RING_WORDS &&
           atomic_load(&ring->taken) == (uint32_t)head;
}

struct wire_heap_header {
    uint32_t version; // WIRE_VERSION
    uint32_t clock;   // enum wire_heap_clock
    uint64_t clock_start;
    _Atomic uint32_t ring_count; // rings used so far; later ones have never been touched
    _Atomic uint32_t abandoned;  // set by the supervisor: it does not read any more
    // The target's own counts, to check a recording.
    _Atomic uint64_t missed; // events that could not be recorded
    _Atomic uint64_t stacks;
    uint64_t own_size;         // of what `own` in a ring points to
    uint32_t libc_heap;        // the allocator is libc's
    _Atomic uint32_t answered; // set by the supervisor after WIRE_HEAP_ENDING (a futex)
    // A forked child whose programs are not followed: it counts only if it ends as what it is. It
    // may become another program instead, without a word.
    uint32_t is_provisional;
    _Atomic uint64_t ended_at; // the clock when the process was about to end; 0: it is not
    // Set by the supervisor, for the code that follows stacks (tools/heap): a total of at most
    // `peak` bytes, before both times, needs no snapshot. None of these ever decreases.
    _Atomic uint64_t peak, next_instructions, next_clock;
    _Atomic uint32_t python;       // version of the interpreter found, as in Py_Version; 0: none
    _Atomic uint32_t python_state; // enum python_state, of that one
};

// Places in the area.
#define WIRE_HEAP_STACKS_AT 4096
#define WIRE_HEAP_RINGS_AT  (WIRE_HEAP_STACKS_AT + WIRE_HEAP_STACKS * 8ul)
#define WIRE_HEAP_RING_AT(index)                                                                   \
    (WIRE_HEAP_RINGS_AT + (unsigned long)(index) * sizeof(struct wire_heap_ring))
#define WIRE_HEAP_SIZE WIRE_HEAP_RING_AT(WIRE_HEAP_RINGS)

#endif
