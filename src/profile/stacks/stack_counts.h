// Stacks that occur repeatedly, each stored once with the sum of its values.
//
// A stack is a key (which address space it belongs to) and addresses, innermost first. Memory grows
// with the number of different stacks; stack_counts_bytes says how much it is, so that the owner
// can work them off and clear. Supervisor only.
#ifndef QUERN_PROFILE_STACK_COUNTS_H
#define QUERN_PROFILE_STACK_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct stack_count {
    uint64_t value;
    size_t first; // in addresses
    uint32_t size;
    uint32_t key;
    bool broken; // the outer part is missing
};

struct stack_counts {
    struct stack_count *entries;
    size_t count;
    uint64_t *addresses;
    size_t address_count;
    struct map map; // of the entries
};

void stack_counts_add(struct stack_counts *counts, uint32_t key, const uint64_t *addresses,
                      size_t size, bool broken, uint64_t value);
size_t stack_counts_bytes(const struct stack_counts *counts);
// Forgets all stacks and frees their memory.
void stack_counts_clear(struct stack_counts *counts);

#endif
