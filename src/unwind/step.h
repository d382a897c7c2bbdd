// Single steps of a walk: step.c makes any of them, stack.c the common ones by itself. Internal to
// src/unwind.
#ifndef QUERN_UNWIND_STEP_H
#define QUERN_UNWIND_STEP_H

#include "unwind/space.h"

// Of a step: it was made. Any other end says why it was not.
#define STEP_DONE UNWIND_END_COUNT

// A rule with the table that it may refer to; no table: no module there.
struct found {
    struct unwind_rule rule;
    const struct unwind_table *table;
};

struct walk {
    struct unwind_space *space;
    const struct unwind_memory *memory;
    struct unwind_registers registers;
    bool exact;
    bool quick;          // only steps that have been made before
    uint64_t guessed;    // how many frames were
    uint64_t guessed_sp; // the stack pointer of the last one
};

static inline uint64_t lookup_address(const struct walk *walk) {
    return walk->registers.value[UNWIND_PC] - !walk->exact;
}

// The rule for the frame whose pc is address, or address + 1 unless it is exact. No call lies
// before a return address that is the start of a function: somebody put it on the stack. Signal
// trampolines are entered that way and say so in their rule; with anything else, such as what ends
// a coroutine, the stack begins.
struct found step_find_rule(struct unwind_space *space, uint64_t address, bool exact);

// Goes to the caller by the rule.
enum unwind_end step_take(struct walk *walk, const struct found *found);

#endif
