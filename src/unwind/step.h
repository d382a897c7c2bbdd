// Single steps of a walk. step.c makes every kind; stack.c makes the common ones itself. Internal
// to src/unwind.
#ifndef QUERN_UNWIND_STEP_H
#define QUERN_UNWIND_STEP_H

#include "unwind/space.h"

// The step succeeded. Any other end says why it did not.
#define STEP_DONE UNWIND_END_COUNT

// A rule and the table that it may refer to; no table: there is no module.
struct found {
    struct unwind_rule rule;
    const struct unwind_table *table;
};

struct walk {
    struct unwind_space *space;
    const struct unwind_memory *memory;
    struct unwind_registers registers;
    bool exact;
    bool quick;          // only steps that are in the cache
    uint64_t guessed;    // number of guessed frames
    uint64_t guessed_sp; // the stack pointer of the last one
};

static inline uint64_t lookup_address(const struct walk *walk) {
    return walk->registers.value[UNWIND_PC] - !walk->exact;
}

// The rule for the frame whose pc is address (exact) or address + 1 (a return address). A return
// address that is the start of a function follows no call: code has put it on the stack. Signal
// trampolines are entered that way, and their rule says so. Any other such address, for example the
// end of a coroutine, is the bottom of the stack.
struct found step_find_rule(struct unwind_space *space, uint64_t address, bool exact);

// Goes to the caller by the rule.
enum unwind_end step_take(struct walk *walk, const struct found *found);

#endif
