// What dhat knows about the heap of a process, in a memory file. The target writes the file; the
// supervisor reads it when the process has ended, whatever ended it.
//
// Words
//   point   a call stack at which blocks are allocated, with sums over its blocks
//   note    the data of a block: its place, its point, the number of accesses
//   folded  the notes' counts have been added to their points: at the free, or at the end
//   time    instructions that all threads have executed
//   event   something that changes sums and peaks: a block is made, resized or freed
//   log     a ring of a thread's events. From time to time, the events of all logs are applied to
//           the points, in their order (wire/dhat_events.h)
//
// The file is sparse. The target's generated code reaches notes from one base, which is where the
// file is mapped; see tool.h (tool_insert_heap_access) for the places.
#ifndef QUERN_WIRE_DHAT_COUNTS_H
#define QUERN_WIRE_DHAT_COUNTS_H

#include <stdint.h>

#define DHAT_MAGIC 0x54414844u

enum {
    DHAT_POINTS = 1 << 22,      // at most
    DHAT_ACCESSES_MOST = 25600, // bytes of a block whose accesses are counted one by one
    DHAT_LOGS = 1 << 14,        // at most
    DHAT_LOG_EVENTS = 1024,     // in each
};

enum dhat_mode { DHAT_HEAP, DHAT_COPY, DHAT_AD_HOC };

enum {
    // Additions to one place in memory wait for each other, so that there are several to add to.
    // Which one an access uses depends on where it is in the code.
    DHAT_LANES = 5,
    DHAT_CLASSES = 38,    // of slots, by the bits of their size
    DHAT_CLASS_LEAST = 4, // the first that there is
};

// The first fields are what inserted code uses.
struct dhat_note {
    uint64_t counted_end;                           // 0: accesses to single bytes are not counted
    uint64_t end;                                   // 0: no block is here
    uint64_t reads[DHAT_LANES], writes[DHAT_LANES]; // bytes
    uint64_t size;
    uint32_t point;
    // For a free slot: the number of the next one, from 1; 0: none. For the first slot of a row of
    // free slots: the number of the next row, and the number of slots in this one.
    uint32_t next, next_row, in_row;
    uint64_t reserved;
};

// Fields that threads often read do not share a cache line with fields that change often.
struct dhat_point_counts {
    _Alignas(64) uint64_t total_bytes, total_blocks;
    uint64_t bytes, blocks; // now
    uint64_t max_bytes, max_blocks;
    uint64_t peak_bytes, peak_blocks; // at the global peak that `peak` numbers
    uint64_t peak;
    uint64_t lifetimes; // sum of end times minus sum of start times; live blocks have no end yet
    uint64_t reads, writes;
    _Alignas(
        64) uint64_t stack; // place of its first word among the stacks: a count, then as many pcs
    uint64_t accesses;      // place among the accesses, of the first byte of a block; 0: none
    uint64_t size;          // of all its freed blocks; 0: none was freed, or sizes differ
    uint32_t differ;        // sizes differ
    uint32_t lock;          // of the three fields before, and of the accesses
};

enum dhat_event_kind { DHAT_ADD, DHAT_MADE, DHAT_RESIZED, DHAT_GONE };

struct dhat_event {
    uint64_t stamp; // the processor's clock; 0 while there is only one thread
    uint64_t ticks; // instructions of the thread since its last event
    uint32_t point, kind;
    uint64_t size;
    uint64_t reads, writes; // of a freed block; of a resized one, reads is the size before
};

struct dhat_log {
    _Alignas(64) uint64_t written; // events, by the thread
    uint32_t is_changing;          // the thread has changed a block but not yet written the event
    _Alignas(64) uint64_t applied; // events that were applied to the points
    _Alignas(64) struct dhat_event events[DHAT_LOG_EVENTS];
};

struct dhat_header {
    uint32_t magic, mode;
    uint32_t points;  // 1 is the first
    uint32_t is_over; // the process has ended and folded everything
    uint64_t stack_words, access_words;
    uint32_t notes[DHAT_CLASSES]; // that were ever in use
    uint64_t time, peak_time;
    uint64_t bytes, blocks, max_bytes, max_blocks;
    uint64_t peak;       // number of the latest peak that was followed by an event
    uint32_t incomplete; // a table was full
    uint32_t logs;       // that were ever in use
};

// Where everything lies in the file. Notes come first, see dhat_at_note.
#define DHAT_AT_HEADER   0x40000000000ul
#define DHAT_AT_POINTS   0x40000100000ul
#define DHAT_AT_STACKS   0x40080000000ul // uint64_t
#define DHAT_STACK_WORDS 0x10000000ul
#define DHAT_AT_ACCESSES 0x40100000000ul // uint32_t, one for each byte of a block
#define DHAT_ACCESSES    0x40000000ul
#define DHAT_AT_LOGS     0x40200000000ul
#define DHAT_SIZE        0x40240000000ul

// Of slots of 1 << bits bytes.
static inline uint64_t dhat_at_note(unsigned bits, uint32_t number) {
    return (((uint64_t)(bits - 2) << (37 - bits)) + number) * sizeof(struct dhat_note);
}

_Static_assert(sizeof(struct dhat_note) == 128, "");
_Static_assert(DHAT_AT_POINTS + DHAT_POINTS * sizeof(struct dhat_point_counts) <= DHAT_AT_STACKS,
               "");
_Static_assert(DHAT_AT_STACKS + 8 * DHAT_STACK_WORDS <= DHAT_AT_ACCESSES, "");
_Static_assert(DHAT_AT_ACCESSES + 4 * DHAT_ACCESSES <= DHAT_AT_LOGS, "");
_Static_assert(DHAT_AT_LOGS + DHAT_LOGS * sizeof(struct dhat_log) <= DHAT_SIZE, "");

#endif
