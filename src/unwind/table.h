// Compiled unwind tables: from .eh_frame to sorted rows, and back by binary search.
// Internal to src/unwind.
//
// A table is one block of pages without pointers:
//
//   header | block index | row offsets (4 bytes each) | row rules (2 bytes each)
//          | rules (16 bytes each) | wide rules | expression bytes
//
// A row holds from its offset to the next row's. The block index gives, for each 2^shift bytes of
// the module, the row that holds at the block's start, so that a search spans few rows. Equal rules
// are stored once: programs have many rows and few distinct rules. Equal modules give equal bytes.
//
// A table is immutable, so that any thread or signal handler may read it.
#ifndef QUERN_UNWIND_TABLE_H
#define QUERN_UNWIND_TABLE_H

#include "unwind/cfi.h"

enum unwind_rule_kind {
    RULE_NONE, // nothing is known here
    RULE_FAST, // as struct unwind_rule says
    RULE_WIDE, // offset is the index of a wide rule
    RULE_END,  // there is no caller
};

struct unwind_wide_rule {
    struct unwind_column cfa;
    struct unwind_column columns[UNWIND_REGISTERS];
    uint32_t used; // as in struct cfi_state
    uint32_t reserved;
};

// Invariant: row offsets rise strictly, the first is 0; every rule index is below rule_count; every
// wide rule's expressions lie within the expression bytes, and used names the columns that are set.
struct unwind_table {
    uint64_t bytes; // of the whole block
    uint32_t span;  // size of the module in bytes
    uint32_t shift; // log2 of the block size
    uint32_t block_count;
    uint32_t row_count;
    uint32_t rule_count;
    uint32_t wide_count;
    uint32_t expression_size;
    uint32_t functions;
    uint32_t bad;
    uint32_t blocks_at, offsets_at, indexes_at, rules_at, wide_at, expressions_at;
};

// Makes the table of an image. NULL: no memory. The table of an image without unwind data contains
// no rules.
struct unwind_table *unwind_table_compile(const struct unwind_image *image);

void unwind_table_free(struct unwind_table *table);

// The rule for an offset from the module's start. Never NULL.
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t offset);

// The invariant above; for tests.
bool unwind_table_check(const struct unwind_table *table);

static inline const void *table_part(const struct unwind_table *table, uint32_t at) {
    return (const uint8_t *)table + at;
}

static inline const struct unwind_wide_rule *table_wide(const struct unwind_table *table,
                                                        const struct unwind_rule *rule) {
    return (const struct unwind_wide_rule *)table_part(table, table->wide_at) + rule->offset;
}

static inline const uint8_t *table_expression(const struct unwind_table *table,
                                              const struct unwind_column *column) {
    return (const uint8_t *)table_part(table, table->expressions_at) + column->value;
}

#endif
