// A block under construction: shared by the files of translate/, seen by tools through tool.h.
#ifndef QUERN_ENGINE_TRANSLATE_BUILDER_H
#define QUERN_ENGINE_TRANSLATE_BUILDER_H

#include <Zydis/Zydis.h>
#include "engine/cache/block.h"
#include "engine/cache/gates.h"
#include "engine/tool.h"
#include "engine/translate/emit.h"

enum {
    BLOCK_INSTRUCTIONS = 96,
    BLOCK_BRANCHES =
        6, // not taken, that a block goes on after: each may start a block that overlaps
    BLOCK_BYTES = 1024, // of target code
    INSN_BYTES = 15,
    BLOCK_CALLS = 4 * BLOCK_INSTRUCTIONS, // inserted by a tool
    INSN_CHECKS = 10,                     // of shadow memory, for one instruction
    BLOCK_EXITS = BLOCK_INSTRUCTIONS * (1 + INSN_CHECKS) + BLOCK_BYTES / 8 + 8 + BLOCK_CALLS,
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
    uint16_t version; // of the block that it leads to
};

// Code that stands behind the block, from a branch and back (hooks/lines.c).
struct detour {
    uint8_t *branch; // its rel32
    uint8_t *back;
    uint64_t line; // of a check of code
    uint32_t size; // of a check of data; 0: of code
    bool spills;   // rcx, of a check of code: it is not spilled yet
    void (*function)(uint32_t, uint64_t, void *, uint64_t);
    uint32_t argument;
};

// The same from accesses to the heap through the same registers (hooks/blocks.c).
enum { HEAP_GROUP_MOST = 16 };
struct heap_group {
    bool is_open;      // more may come
    uint8_t at, other; // registers: of the address, and one more
    bool by_base;      // the base was asked: the address is computed behind the block
    bool spills_at;    // there, too
    uint8_t *branch, *back;
    uint8_t *displacement; // of the address; it becomes `from`. NULL: as it is
    struct tool_access first;
    int64_t from, to; // least displacement, end of the last
    unsigned count;
    struct heap_access {
        int64_t displacement;
        uint16_t size;
        uint8_t reads, writes;
    } accesses[HEAP_GROUP_MOST];
    void (*beyond)(uint32_t, uint64_t, void *, uint64_t);
};

// A memory operand as generated code is to address it.
struct address {
    int base, index; // register numbers; -1: none
    unsigned scale;  // 0..3
    int64_t displacement;
    bool is_rip;    // relative to rip; displacement is where it leads
    bool is_narrow; // 32-bit address
};

// A store whose check has a way of its own when it fails (cache_gate_store).
struct checked_store {
    struct address address;
    unsigned size;
    bool keeps_flags;
    uint64_t pc, units;
    uint8_t *jumps[8]; // after the rel32 of each jump that leads there
    unsigned jump_count;
    uint8_t *back;
};

// A look at hidden units at the head of the block (cache/version.h), and its way when some are
// undefined.
struct hidden_check {
    uint64_t units; // 0: there is none
    uint8_t *jump;  // after the rel32 that leads there
    uint8_t *back;
    bool spills; // rcx is spilled on the way
};

struct builder {
    struct assembler e;
    uint8_t *begin; // where the block's code starts
    uint64_t start; // the block's pc
    uint64_t pc;    // of the instruction being translated
    bool checked;
    bool is_module;         // code of a file
    uint64_t mapping;       // where the mapping begins that the code is in
    unsigned version;       // of the block
    uint64_t units;         // that may be undefined where code is written now (cache/version.h)
    bool force;             // follow the next instruction
    bool unredirected;      // the target's own replacements do not count
    bool unreplaced;        // nor do the tool's
    bool followed;          // the instruction being translated is
    uint64_t written;       // units that it writes then
    bool ended;             // an unconditional exit has been written
    bool together;          // a tool wants no stop before the instruction (tool_keep_together)
    const struct insn *all; // instructions of the block
    unsigned all_count;
    bool has_wanted_flags;
    uint32_t wanted_flags[BLOCK_INSTRUCTIONS]; // before each of them (flags.c)
    const struct insn *rest; // what the block still has, from the instruction at pc on
    unsigned rest_count;
    unsigned state_count, exit_count, detour_count, store_count;
    struct hidden_check hidden;
    struct detour detours[BLOCK_INSTRUCTIONS * 6];
    unsigned heap_group_count;
    struct heap_group heap_groups[BLOCK_INSTRUCTIONS * TOOL_ACCESSES];
    struct checked_store stores[BLOCK_INSTRUCTIONS];
    struct block_state states[BLOCK_INSTRUCTIONS * 16];
    struct pending_exit exits[BLOCK_EXITS];
};

// decode.c
struct hooked_function;

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
bool insn_is_vdso(const struct insn *);

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
void builder_force_by(struct builder *, struct asm_jump, uint64_t units);
// The same for a jump whose distance is still to be written.
void builder_exit_rel32(struct builder *, uint64_t target);
void builder_force_rel32(struct builder *, uint64_t units);
// Whether all flags are written before any is read, from the instruction at hand on.
bool builder_flags_are_dead(struct builder *);
// To be told of the last instruction of a block before it is translated. True: it is a call, and it
// is news that flags are read behind it; blocks that were translated before are no longer right.
bool flags_look_behind_call(const struct insn *, uint64_t mapping, bool is_module);

// checks.c: what shadow memory asks for around an instruction.
void checks_init(void);
void checks_before(struct builder *, struct insn *);
void checks_after(struct builder *, struct insn *);
// An operand whose address has just been computed into scratch registers, which are spilled.
void checks_operand(struct builder *, struct insn *, const ZydisDecodedOperand *,
                    const struct address *, uint16_t spilled);
// The whole block of a function that is replaced.
void checks_replace(struct builder *, const struct hooked_function *);
// After the block: the ways of stores whose checks have failed.
void checks_end(struct builder *);
// At the head: over to another version if other registers are undefined than this one is for.
void checks_head(struct builder *, unsigned count);
// A return has just released the size bytes below rsp.
void checks_return(struct builder *, uint64_t pc, unsigned size);

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
