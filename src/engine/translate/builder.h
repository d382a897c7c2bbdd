// A block under construction: shared by the files of translate/, seen by tools through tool.h.
#ifndef QUERN_ENGINE_TRANSLATE_BUILDER_H
#define QUERN_ENGINE_TRANSLATE_BUILDER_H

#include <Zydis/Zydis.h>
#include "engine/cache/block.h"
#include "engine/translate/emit.h"

enum {
    BLOCK_INSTRUCTIONS = 96,
    BLOCK_BRANCHES =
        6, // not taken, that a block goes on after: each may start a block that overlaps
    BLOCK_BYTES = 1024, // of target code
    INSN_BYTES = 15,
    BLOCK_CALLS = 4 * BLOCK_INSTRUCTIONS, // inserted by a tool
    BLOCK_EXITS = BLOCK_INSTRUCTIONS + BLOCK_BYTES / 8 + 8 + BLOCK_CALLS,
};

// A decoded target instruction.
struct insn {
    uint64_t pc;
    const uint8_t *bytes;
    ZydisDecodedInstruction z;
    ZydisDecoderContext context;
    bool has_operands; // operands below are valid (insn_operands)
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

struct pending_exit {
    uint8_t *site; // of the rel32; NULL for an exit that is not a jump
    uint64_t target;
    enum exit_kind kind;
    uint32_t resume; // of an inserted call: where to go on
    const struct inserted_call *call;
};

struct builder {
    struct emitter e;
    uint8_t *begin; // where the block's code starts
    uint64_t start; // the block's pc
    uint64_t pc;    // of the instruction being translated
    bool checked;
    bool ended; // an unconditional exit has been written
    bool together; // a tool wants no stop before the instruction (tool_keep_together)
    const struct insn *rest; // what the block still has, from the instruction at pc on
    unsigned rest_count;
    unsigned state_count, exit_count;
    struct block_state states[BLOCK_INSTRUCTIONS * 8];
    struct pending_exit exits[BLOCK_EXITS];
};

// decode.c
enum insn_status { INSN_VALID, INSN_INVALID, INSN_CUT_OFF, INSN_TOO_LONG };
enum insn_status insn_decode(struct insn *, uint64_t pc, const uint8_t *bytes, unsigned available);
void insn_operands(struct insn *);      // decodes operands if not done yet
uint32_t insn_registers(struct insn *); // general registers that it reads or writes, as a mask
// Its explicit memory operand, or NULL. Not for address computations (lea, nop).
const ZydisDecodedOperand *insn_memory(struct insn *);
int register_number(ZydisRegister); // general register's encoding number, or -1
static inline uint64_t insn_next(const struct insn *insn) {
    return insn->pc + insn->z.length;
}
// Where its rip-relative operand is.
uint64_t insn_rip_target(const struct insn *);

// From here on the target's state is as described.
void builder_state(struct builder *, enum state_kind, uint16_t spilled);
// Exits: a conditional or unconditional jump whose rel32 is the last 4 bytes to be written now.
void builder_exit_rel32(struct builder *, uint64_t target);
void builder_exit_inline(struct builder *, enum exit_kind, uint64_t target);
void builder_jump_exit(struct builder *, uint64_t target);
// A call of C code at this point; see tool_insert_call.
void builder_call(struct builder *, void (*function)(void *), void *argument);
// Lets the dispatcher find the branch that is about to be taken.
void builder_note_branch(struct builder *, uint64_t pc);

// copy.c: instructions that are not control flow.
void translate_plain(struct builder *, struct insn *);
// Loads a 64-bit operand of an indirect branch into rcx, which has been spilled.
void translate_load_operand(struct builder *, struct insn *, const ZydisDecodedOperand *);

// control.c: returns false if the instruction is not control flow.
bool translate_control(struct builder *, struct insn *);

#endif
