// What cells mean (races.h), and nodes: sets of several segments with what each has accessed. Equal
// nodes are one, so a cell names its node by a number. Plain.
#ifndef QUERN_RACES_CELLS_H
#define QUERN_RACES_CELLS_H

#include "tools/races/target/races.h"

enum {
    CELL_BYTES = 4,
    CELL_SEGMENT = 8, // where the segment's number begins; below: bits of the bytes written
    CELL_WRITES = 4,  // where those begin; below: bits of the bytes read or written
    CELL_BITS = 0xff,
    NODE_MOST = CLOCK_SLOTS, // entries
};
#define CELL_NODE   (1u << 31)
#define CELL_ATOMIC 0xffffffffu

static inline uint32_t *cell_of(uint64_t address) {
    return (uint32_t *)((address & ~(uint64_t)(CELL_BYTES - 1)) + RACES_SHADOW);
}

static inline uint32_t cell_segment(uint32_t entry) {
    return entry >> CELL_SEGMENT;
}

// Entries are cells of one segment each. Returns how many; copies at most NODE_MOST. A cell from
// before segments began anew has none.
uint32_t cell_entries(uint32_t cell, uint32_t entries[NODE_MOST]);
// A cell with these entries. 0: there is no room; *is_full then.
uint32_t cell_make(const uint32_t *entries, uint32_t count, bool *is_full);
void cells_renew(void);

#endif
