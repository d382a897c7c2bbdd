// A block under construction: shared by the files of translate/. Tools see it as struct tool_block.
//
// There is one builder; the cache lock guards it. Code is written in the order of the target's
// instructions. builder_state notes where the target's registers are from a place of the code on.
// So the engine finds the exact state of the target when a signal or a fault interrupts the block.
// Exits are collected here. Their code is written at the end, apart from the block's.
#ifndef QUERN_ENGINE_TRANSLATE_BUILDER_H
#define QUERN_ENGINE_TRANSLATE_BUILDER_H

#include "engine/cache/block.h"
#include "engine/cache/gates.h"
#include "engine/tool.h"
#include "engine/tool/insert.h"
#include "engine/insn.h"

enum {
    BLOCK_INSTRUCTIONS = INSERT_INSTRUCTIONS,
    BLOCK_BRANCHES =
        6, // not taken, that a block goes on after: each may start a block that overlaps
    BLOCK_BYTES = 1024,                   // of target code
    BLOCK_CALLS = 4 * BLOCK_INSTRUCTIONS, // inserted by a tool
    BLOCK_EXITS = BLOCK_INSTRUCTIONS * (1 + INSERT_EXITS) + BLOCK_BYTES / 8 + 8 + BLOCK_CALLS,
};

struct pending_exit {
    uint8_t *site; // of the rel32; NULL for an exit that is not a jump
    uint64_t target;
    enum exit_kind kind;
    uint32_t resume; // of an inserted call: where to go on
    const struct inserted_call *call;
    uint16_t version; // of the block that it leads to
};

struct builder {
    struct assembler code;
    uint8_t *begin; // where the block's code starts
    uint64_t start; // the block's pc
    uint64_t pc;    // of the instruction being translated
    bool checked;
    bool is_module;         // code of a file
    uint64_t mapping;       // where the mapping begins that the code is in
    unsigned version;       // of the block
    bool forced;            // of a forced version
    uint64_t exit_set;      // exits lead to the version of this set
    bool is_single;         // holds one instruction and is run once
    bool unredirected;      // the target's own replacements do not count
    bool unreplaced;        // nor do the tool's
    bool ended;             // an unconditional exit has been written
    bool together;          // a tool wants no stop before the instruction (tool_keep_together)
    const struct insn *all; // instructions of the block
    unsigned all_count;
    bool has_wanted_flags;
    uint32_t wanted_flags[BLOCK_INSTRUCTIONS]; // before each of them (flags.c)
    const struct insn *rest; // what the block still has, from the instruction at pc on
    unsigned rest_count;
    unsigned state_count, exit_count;
    struct block_state states[BLOCK_INSTRUCTIONS * 16];
    struct pending_exit exits[BLOCK_EXITS];
};

struct hooked_function;

// From here on the target's state is as described.
void builder_state(struct builder *, enum state_kind, uint16_t spilled);
// The jump, which has just been written with a long distance, is an exit.
void builder_exit_by(struct builder *, struct asm_jump, uint64_t target);
void builder_exit_inline(struct builder *, enum exit_kind, uint64_t target);
void builder_jump_exit(struct builder *, uint64_t target);
// A call of C code at this point; see tool_insert_call.
void builder_call(struct builder *, void (*function)(void *), void *argument);
// Lets the dispatcher find the branch that is about to be taken.
void builder_note_branch(struct builder *, uint64_t pc);

// The same to the forced version of the block that begins with the instruction at hand.
void builder_force_by(struct builder *, struct asm_jump, uint64_t set);
// Calls function(argument) with the target's general registers at hand (insert_saved_call). States
// are noted for code that a signal may interrupt.
void builder_saved_call(struct builder *, void (*function)(void *), void *argument);
// Spills rcx, loads a field into it and jumps if it is 0. rcx is spilled on both ways.
struct asm_jump builder_jump_if_zero(struct builder *, unsigned width, unsigned field);
// Whether all flags are written before any is read, from the instruction at hand on.
bool builder_flags_are_dead(struct builder *);
// The same from the next instruction on; false: the block ends with the one at hand.
bool builder_flags_are_dead_behind(struct builder *);
// To be told of the last instruction of a block before it is translated. True: it is a call, and it
// is news that flags are read behind it; blocks that were translated before are no longer right.
bool flags_look_behind_call(const struct insn *, uint64_t mapping, bool is_module);

// replace.c: the whole block of a function that a tool replaces.
void translate_replaced(struct builder *, const struct hooked_function *);

// show.c: lets the tool insert code before the instruction.
void translate_show(struct builder *, struct insn *, bool first);

// copy.c: instructions that are not control flow.
void translate_plain(struct builder *, struct insn *);
// Loads a 64-bit operand of an indirect branch into rcx, which has been spilled.
void translate_load_operand(struct builder *, struct insn *, const ZydisDecodedOperand *);

// Returns as the instruction at pc does, with rcx spilled; `extra` bytes more are released.
void translate_return_from(struct builder *, uint64_t pc, unsigned extra);

// control.c: returns false if the instruction is not control flow.
bool translate_control(struct builder *, struct insn *);

#endif
