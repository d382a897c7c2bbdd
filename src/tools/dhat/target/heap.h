// Where dhat's blocks lie, and the accesses to them that inserted code counts.
//
// A block begins where its slot begins. Slots have 1 << bits bytes, HEAP_LEAST <= bits <=
// HEAP_MOST, and their address says so:
//   HEAP_START + ((bits - 2) << HEAP_CLASS_BITS) + (number << bits)
// Each slot has a note (wire/dhat_counts.h). Notes lie from HEAP_NOTES on, at heap_note; nothing
// else does in the first 1 << HEAP_NOTES_BITS bytes. The counters of single bytes, kept for slots
// of up to HEAP_COUNTED_MOST bits, stop at 65535. Every thread calls tool_set_counters(HEAP_NOTES).
// Threads that touch one block at the same time may lose counts.
#ifndef QUERN_DHAT_HEAP_H
#define QUERN_DHAT_HEAP_H

#include "engine/tool.h"
#include "wire/dhat_counts.h"

#define HEAP_START    0x280000000000ul
#define HEAP_END      0x300000000000ul
#define HEAP_NOTES    0x401000000000ul
#define HEAP_COUNTERS 0x4a0000000000ul // uint16_t, one for each byte from HEAP_START on

enum {
    HEAP_LEAST = DHAT_CLASS_LEAST,
    HEAP_MOST = DHAT_CLASSES - 1,
    HEAP_COUNTED_MOST = 21,
    HEAP_CLASS_BITS = 37,
    HEAP_NOTES_BITS = 42,
    // Ends in notes are addresses << HEAP_PLACE_SHIFT: the bits above the area are shifted out.
    HEAP_PLACE_SHIFT = 21,
};

static inline uint64_t heap_slot(unsigned bits, uint64_t number) {
    return HEAP_START + ((uint64_t)(bits - 2) << HEAP_CLASS_BITS) + (number << bits);
}

// The size class of an address in the heap.
static inline unsigned heap_bits(uint64_t address) {
    return ((address - HEAP_START) >> HEAP_CLASS_BITS) + 2;
}

static inline uint64_t heap_note(uint64_t address) {
    uint64_t slot = (address - HEAP_START) >> heap_bits(address);
    return HEAP_NOTES + slot * sizeof(struct dhat_note);
}

// Accesses through the same registers are counted together, where the first of them is.
struct heap_touch {
    uint16_t offset, size; // from the least address of the group
    uint8_t reads, writes; // how often, at most 2
};
struct heap_touches {
    uint16_t count;
    uint16_t size; // from the least address to the end of what is touched; 0: not counted in place
    struct heap_touch touches[];
};

// While a block of code is translated: inserts code that counts an access of `reads` reads and then
// `writes` writes. For a group that does not lie within one block, the code calls `beyond`: its
// argument is the address of the heap_touches, its address (the lowest one + the group's size) <<
// HEAP_PLACE_SHIFT.
void heap_insert_access(struct tool_block *, const struct tool_access *, unsigned reads,
                        unsigned writes, tool_address_function *beyond);
// All accesses of the instruction have been inserted.
void heap_end_instruction(struct tool_block *, bool goes_on);
// In block_end: the code that does the counting.
void heap_end_block(struct tool_block *);
void heap_code_flushed(void); // the hook

#endif
