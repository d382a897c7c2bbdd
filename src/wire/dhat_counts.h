// What dhat knows of the heap of a process, in a memory file that the target writes and the
// supervisor reads when the process has ended, whatever ended it.
//
// Words
//   point   a call stack at which blocks are allocated, with sums over its blocks
//   note    what is known of a block: where it lies, whose it is, how often it was touched
//   folded  the notes' counts have been added to their points: at the free, or at the end
//   time    instructions that all threads have executed
//
// The file is sparse. The target's generated code reaches notes and the map of large blocks from
// one base, which is where the file is mapped; see tool.h (tool_insert_heap_access) for the places.
#ifndef QUERN_WIRE_DHAT_COUNTS_H
#define QUERN_WIRE_DHAT_COUNTS_H

#include <stdint.h>

#define DHAT_MAGIC 0x54414844u

enum {
    DHAT_POINTS = 1 << 22,      // at most
    DHAT_ACCESSES_MOST = 25600, // bytes of a block whose accesses are counted one by one
};

enum dhat_mode { DHAT_HEAP, DHAT_COPY, DHAT_AD_HOC };

enum { DHAT_LANES = 4 }; // places to add to, see tool.h

// 128 bytes; the first fields are what inserted code uses.
struct dhat_note {
    uint64_t start;
    uint64_t size;    // 0: no block is here
    uint64_t counted; // so many bytes have their accesses counted one by one
    uint64_t reads[DHAT_LANES], writes[DHAT_LANES]; // bytes
    uint64_t born;                                  // time
    uint32_t point;
    uint32_t next;  // of a free slot: the next one, 0: none
    uint32_t class; // of its slot
    uint32_t pages; // of a mapping of its own
    uint64_t reserved[2];
};

struct dhat_point_counts {
    uint64_t total_bytes, total_blocks;
    uint64_t bytes, blocks; // now
    uint64_t max_bytes, max_blocks;
    uint64_t peak_bytes, peak_blocks; // at the global peak that `peak` numbers
    uint64_t peak;
    uint64_t lifetimes;
    uint64_t reads, writes;
    uint64_t stack;    // place of its first word among the stacks: a count, then as many pcs
    uint64_t accesses; // place among the accesses, of the first byte of a block; 0: none
    uint64_t size;     // of all its blocks that are gone; 0: none is gone yet, or sizes differ
    uint64_t differ;   // sizes differ
};

struct dhat_header {
    uint32_t magic, mode;
    uint32_t points;  // 1 is the first
    uint32_t is_over; // the process has come to its end and folded everything
    uint64_t stack_words, access_words;
    uint64_t note_units; // notes in use, in units of 8 bytes
    uint64_t time, peak_time;
    uint64_t bytes, blocks, max_bytes, max_blocks;
    uint64_t peak;       // number of the latest peak that something came after
    uint32_t incomplete; // there was no room for everything
};

// Where everything lies in the file.
#define DHAT_AT_NOTES    0ul           // number 0 is no block
#define DHAT_AT_LARGE    0x840000000ul // map of large blocks, 1 GiB
#define DHAT_AT_HEADER   0x1000000000ul
#define DHAT_AT_POINTS   0x1000100000ul
#define DHAT_AT_STACKS   0x1080000000ul // uint64_t
#define DHAT_STACK_WORDS 0x10000000ul
#define DHAT_AT_ACCESSES 0x1100000000ul // uint32_t, one for each byte of a block
#define DHAT_ACCESSES    0x40000000ul
#define DHAT_SIZE        0x1200000000ul

#define DHAT_NOTE_UNITS 0x100000000ul // a note's number counts units of 8 bytes

enum { DHAT_NOTE = sizeof(struct dhat_note) / 8 }; // units of a note

_Static_assert(DHAT_NOTE == 16, "");
_Static_assert(DHAT_NOTE_UNITS * 8 <= DHAT_AT_LARGE, "");
_Static_assert(DHAT_AT_POINTS + DHAT_POINTS * sizeof(struct dhat_point_counts) <= DHAT_AT_STACKS,
               "");
_Static_assert(DHAT_AT_STACKS + 8 * DHAT_STACK_WORDS <= DHAT_AT_ACCESSES, "");
_Static_assert(DHAT_AT_ACCESSES + 4 * DHAT_ACCESSES <= DHAT_SIZE, "");

#endif
