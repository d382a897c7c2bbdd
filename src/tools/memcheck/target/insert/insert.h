// The code that memcheck inserts: what shadow memory asks for around an instruction
// (docs/memcheck.md). memcheck's hooks about code, and the parts they are made of.
//
// Versions of a block (engine/tool/insert.h) tell which units may be undefined when it is entered.
// A forced version follows its first instruction whatever it uses.
//
// Vector, mask and x87 registers are *hidden units*: most code does not touch them, and it would be
// a waste to have versions of it for each that happens to be undefined. So exits never mention
// them. A block that touches some looks at its head whether any of them is undefined, and goes on
// in the version for those. It calls those defined that it overwrites before it reads them.
#ifndef QUERN_MEMCHECK_INSERT_H
#define QUERN_MEMCHECK_INSERT_H

#include "engine/tool/insert.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/track/track.h"

// ---- hooks (struct tool) ----

void checks_start(void); // once: writes gates
void checks_head(struct tool_block *);
void checks_before(struct tool_block *, struct insn *);
void checks_after(struct tool_block *, struct insn *);
void checks_operand(struct tool_block *, struct insn *, const ZydisDecodedOperand *,
                    const struct asm_memory *, uint16_t spilled);
void checks_returned(struct tool_block *, uint64_t pc, unsigned size);
void checks_replaced(struct tool_block *);
void checks_end(struct tool_block *);
uint64_t checks_thread_set(bool is_single);
void checks_register_set(unsigned number);

// ---- a block under construction ----

#define HIDDEN_UNITS (~0ul << SHADOW_UNIT_X87)
#define UNIT(number) (1ul << (number))

// A store whose check has a way of its own when it fails (store_gate.c).
struct checked_store {
    struct asm_memory memory;
    unsigned size;
    bool keeps_flags;
    uint64_t pc, units;
    struct asm_jump jumps[8]; // that lead there
    unsigned jump_count;
    uint8_t *back;
};

// A look at hidden units at the head of the block, and its way when some are undefined.
struct hidden_check {
    uint64_t units;       // 0: there is none
    struct asm_jump jump; // that leads there
    uint8_t *back;
    bool spills; // rcx is spilled on the way
};

struct checked_block {
    struct tool_block *block;
    struct assembler *e;
    struct tool_version version;
    uint64_t units;   // that may be undefined where code is written now; checks_set_units
    bool force;       // follow the next instruction
    bool followed;    // the instruction at hand is
    uint64_t written; // units that it writes then
    unsigned store_count;
    struct hidden_check hidden;
    struct checked_store stores[INSERT_INSTRUCTIONS];
};

// From here on these units may be undefined; exits lead to the version for them.
static inline void checks_set_units(struct checked_block *b, uint64_t units) {
    b->units = units;
    insert_exits_to(b->block, units & ~HIDDEN_UNITS);
}

// Fields of the thread's state.
enum {
    ANY_HIDDEN = INSERT_THREAD_STATE + offsetof(struct memcheck_thread, registers.any_hidden),
    OLD_RSP = INSERT_THREAD_STATE + offsetof(struct memcheck_thread, old_rsp),
    STORE_BACK = INSERT_THREAD_STATE + offsetof(struct memcheck_thread, store_back),
};

// ---- checks.c ----

// Whether the operand is memory that the instruction accesses, and not only computes or names.
bool checks_touches_memory(const struct insn *, const ZydisDecodedOperand *);
// The largest piece of an operand that one instruction deals with.
unsigned checks_piece(unsigned size);
// mov shadow, value; the value is sign-extended to the size
void checks_set_shadow(struct assembler *, const struct asm_memory *, unsigned size,
                       uint32_t value);

// ---- store_gate.c ----

// Where generated code jumps when a store meets shadow that is not zero, with the address in rcx,
// which is spilled, and store_back set. If the bytes are merely undefined, they are defined now,
// and execution goes on at store_back; otherwise STORE_REFUSED bytes before it. By the binary
// logarithm of the size, and whether flags are to be kept.
extern uint64_t store_gates[7][2];
enum { STORE_REFUSED = 5 };
void store_gates_write(void);

// ---- follow.c ----

// The unit's byte in the thread's state.
static inline unsigned unit_field(unsigned unit) {
    return INSERT_THREAD_STATE + unit;
}
// Sets the units' bytes to 0.
void follow_define(struct assembler *, uint64_t units);
struct track_units follow_units(const struct insn *);
// Whether the instruction reads a unit that may be undefined here.
bool follow_is_needed(const struct checked_block *, struct insn *);
void follow_insn(struct checked_block *, struct insn *);
// Units that an instruction which is not followed overwrites are defined from there on.
void follow_define_overwritten(struct checked_block *, struct insn *);
void follow_forget_dead(struct checked_block *, const struct insn *);
// If all of these units are defined, over to the version of `target` for which the rest may not be.
void follow_if_defined(struct checked_block *, uint64_t units, uint64_t target);
// A replaced function returns: its result and the flags are defined.
void follow_replaced(struct checked_block *);

// ---- hidden.c ----

void hidden_head(struct checked_block *);
// Behind the block: the way on when hidden units are undefined at its head.
void hidden_end(struct checked_block *);
uint64_t undefined_units(unsigned first, unsigned last); // of the calling thread, by eights

// ---- release.c ----

// How far an instruction moves rsp up; 0: not, or down; -1: anywhere.
int64_t release_of(struct insn *);
// After an instruction: the shadow of what it has released by moving rsp.
void release_after(struct checked_block *, struct insn *);
// Before a call, which ends the red zone, after the checks of its operands.
void release_at_call(struct checked_block *, const struct insn *);
// After a return's pop, of size bytes.
void release_returned(struct checked_block *, uint64_t pc, unsigned size);
// A store below the stack pointer, perhaps.
void release_note_red_zone(const struct insn *, const ZydisDecodedOperand *);

#endif
