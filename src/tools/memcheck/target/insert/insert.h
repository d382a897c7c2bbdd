// The code that memcheck inserts around an instruction to check and update shadow memory
// (docs/memcheck.md): memcheck's hooks about code, and the parts of these.
//
// The version of a block (engine/tool/insert.h) says which units may be undefined when the block is
// entered. A forced version follows its first instruction, whatever that uses.
//
// Vector, mask and x87 registers are *hidden units*. Most code does not touch them, so a version
// for each undefined one would be a waste. Exits therefore never mention them. A block that touches
// some checks at its start whether any of them is undefined, and continues in the version for
// these. It marks those as defined that it overwrites before it reads them.
#ifndef QUERN_MEMCHECK_INSERT_H
#define QUERN_MEMCHECK_INSERT_H

#include "engine/tool.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/track/track.h"

// ---- hooks (struct tool) ----

void checks_start(void); // once: writes gates
void checks_flushed(void);
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
    struct assembler *code;
    struct tool_version version;
    uint64_t units;    // that may be undefined where code is written now; checks_set_units
    bool is_generated; // the code
    bool force;        // follow the next instruction
    bool followed;     // the instruction at hand is
    uint64_t written;  // units that it writes then
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

// False: the operand's address is not base + index + displacement, or has a segment.
bool checks_plain_address(const struct checked_block *, const struct insn *,
                          const ZydisDecodedOperand *, struct asm_memory *);

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
// Moves of SSE and AVX that change no bit: of a whole vector register, or of its low part.
bool follow_is_vector_move(ZydisMnemonic);
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

// ---- carry.c, carry_gate.c ----

enum carry_kind { CARRY_LOAD, CARRY_LOAD_VECTOR, CARRY_STORE, CARRY_COPY };

// An instruction that moves data between a register and memory, and does nothing else; or a movs
// without repetition (copy).
struct carry {
    enum carry_kind kind;
    const ZydisDecodedOperand *memory;
    struct asm_memory address;
    unsigned size; // bytes: a power of two up to 32
    bool is_frame; // relative to rsp
    uint8_t unit;  // of the register
    unsigned bits; // offset of its bits in the thread's state
};

// False: it is not such an instruction, or C code has to follow it here.
bool carry_describe(const struct checked_block *, const struct insn *, struct carry *);
// The units that are undefined afterwards.
uint64_t carry_written(const struct carry *);
// Around the call of C code: it is made only if the gate refuses.
struct asm_jump carry_try(struct checked_block *, const struct carry *);
void carry_end(struct checked_block *, const struct carry *, struct asm_jump carried);
uint64_t carry_gate(enum carry_kind, unsigned size, bool is_frame);
void carry_gates_write(void);

// ---- compute.c ----

enum compute_kind {
    COMPUTE_MOVE, // of a register, or of its lower part with zeros or the sign
    COMPUTE_AND,
    COMPUTE_OR,
    COMPUTE_XOR,
    COMPUTE_ADD,
    COMPUTE_SUBTRACT,
    COMPUTE_SHL,
    COMPUTE_SHR,
    COMPUTE_SAR,
};

// An instruction on general registers whose undefined bits generated code computes.
struct compute {
    enum compute_kind kind;
    uint8_t width, from_width; // bits
    uint8_t to, from;          // registers
    bool has_source;           // else the source is a constant
    bool is_signed;            // of a move: it extends the sign
    bool writes_flags;
    int32_t immediate;
};

// False: it is not such an instruction, or C code has to follow it here.
bool compute_describe(const struct checked_block *, const struct insn *, struct compute *);
void compute_write(struct checked_block *, const struct compute *);

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
