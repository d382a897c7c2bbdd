// Where an instruction takes its inputs from and leaves its outcome, bit by bit.
//
// A place is a byte of the state before an instruction, together with its shadow. The outcome is
// one flat array of bytes: registers, what the flags decide, and windows of memory around the
// operands.
#ifndef DEFINEDNESS_PLACES_H
#define DEFINEDNESS_PLACES_H

#include <Zydis/Zydis.h>

#include "../../../engine/differential/random.h"
#include "../../../engine/differential/state.h"
#include "engine.h"

enum { PLACES_MAX = 8192, WINDOWS_MAX = 4, WINDOW_MAX = 2400, OUTCOME_MAX = 2600 + 4 * WINDOW_MAX };

struct place {
    uint8_t *value, *shadow;
    uint8_t group; // operand it belongs to
    int8_t unit;   // enum shadow_unit, -1: memory
};

struct window {
    uint64_t start;
    unsigned size;
    uint8_t before[WINDOW_MAX];
};

struct scene {
    const ZydisDecodedInstruction *instruction;
    const ZydisDecodedOperand *operands;
    const struct form *form;
    struct place places[PLACES_MAX];
    unsigned place_count, group_count;
    uint8_t group_operands[ZYDIS_MAX_OPERAND_COUNT]; // their numbers, as decoded
    bool has_flags;                                  // the flags are an input or partly kept
    struct window windows[WINDOWS_MAX];
    unsigned window_count;
};

// Of the state at CONTEXT_IN.
void scene_make(struct scene *);
void scene_restore_memory(const struct scene *);

enum {
    OUTCOME_GENERAL = 0,
    OUTCOME_CONDITIONS = 128,
    OUTCOME_MASK = 130,
    OUTCOME_X87 = 194,
    OUTCOME_VECTOR = 274,
    OUTCOME_MEMORY = 2322
};
// The state at CONTEXT_OUT and memory; what track says about it.
unsigned scene_outcome(const struct scene *, uint8_t *bytes);
unsigned scene_marked(const struct scene *, uint8_t *bytes);
// enum shadow_unit, -1: memory.
int scene_unit_of(unsigned byte);
const char *scene_name_outcome(const struct scene *, unsigned byte, char *buffer);

// Undefined flags that cannot be seen through the conditions they form together.
uint16_t conditions_of(uint64_t flags);
void scene_set_flags(uint32_t undefined); // shadow of the flags

#endif
