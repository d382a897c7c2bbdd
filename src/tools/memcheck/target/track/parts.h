// What the parts of track share: the form in which an instruction is kept, and their functions for
// each other.
//
// Words
//   bits        undefined bits of a value: set where it is not defined
//   operand     a register, a piece of memory or a constant that the instruction names or implies
//   run         the function that follows one instruction; one for each way of following
//   control     an operand whose value steers data but does not enter it (shuffle indices, counts)
//   stub        machine code that performs an instruction on bits instead of values (track/stub.c)
//
// All of this runs on the thread concerned with the target's vector registers in the processor, so
// these files are built for general registers only.
#ifndef QUERN_MEMCHECK_TRACK_PARTS_H
#define QUERN_MEMCHECK_TRACK_PARTS_H

#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/registers.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/track/track.h"

enum operand_kind {
    OPERAND_NONE,
    OPERAND_GENERAL,
    OPERAND_VECTOR,
    OPERAND_MASK,
    OPERAND_MMX,
    OPERAND_X87, // number: relative to the top of the stack
    OPERAND_FLAGS,
    OPERAND_IMMEDIATE,
    OPERAND_MEMORY,
    OPERAND_OTHER, // always defined: segments, control registers, rip
};

enum {
    CONTROL_ABSENT = 0xff,
    OPERANDS = 8,
    FIELD_NONE = 0,
    FIELD_REG,
    FIELD_RM,
    FIELD_VVVV,
    FIELD_IS4
};

struct track_operand {
    uint8_t kind, number;
    uint8_t shift; // of ah, ch, dh, bh: 8
    bool reads, writes;
    bool is_hidden;
    uint8_t field;        // where the register's number stands in the instruction
    uint8_t vector_index; // of memory: number of the vector register that is the index, plus 1
    uint16_t size;        // bytes
    union {
        struct tool_access access;
        uint64_t immediate;
    };
};

struct stub_frame;
struct second_jump;
struct context;
typedef void track_function(struct context *, const struct track *);

struct track {
    track_function *run;
    uint64_t pc;
    uint16_t mnemonic;
    uint8_t operand_count;
    uint8_t width;     // of integer instructions: bits
    uint8_t condition; // COND_* of jcc and its kin
    bool is_negated;   // the condition is
    bool is_legacy;    // of vector instructions: bits above the operand are kept, not cleared
    bool is_same;      // both sources are the same register
    bool is_zeroing;   // a mask clears elements instead of keeping them
    bool is_broadcast; // the memory operand is one element
    uint8_t mask;      // of the writemask register; 0: none
    uint8_t class;     // of vector instructions (track/table.h)
    uint8_t in_lane, out_lane; // element sizes, bits
    uint8_t control;           // the operand that steers, or CONTROL_ABSENT
    uint8_t control_kind;      // enum vector_control
    uint8_t vector_size;       // bytes
    uint8_t mask_lane;         // bits of an element that the writemask selects
    uint8_t memory_lane;       // bytes of an element that it selects in memory; 0: all is loaded
    bool is_unary;             // of scalars: the first source lends its upper bits only
    bool is_scalar;            // of EVEX: the writemask selects the lowest element only
    bool is_dense;             // memory holds only the elements that the writemask selects
    bool keeps_upper;          // of scalars: the destination keeps its upper bits
    bool keeps_only;           // the destination is no source, whatever the mask keeps of it
    uint8_t variant;           // of the class
    bool repeats, repeats_while_equal;
    bool is_narrow; // of string instructions: 32-bit addresses
    uint8_t length;
    union {
        void (*stub)(struct stub_frame *);
        struct second_jump *second; // of a conditional jump (track/branch.c); NULL: none
    };
    struct track_operand operands[OPERANDS];
};

// One instruction being followed.
struct context {
    struct shadow_registers *shadow;
    uint64_t *values; // general registers
    uint32_t origin;  // of the first undefined input
    bool over_reads;  // aligned loads may miss all that is addressable
    uint64_t unread;  // where a read ends the instruction, so that it writes nothing; plus 1
    uint8_t known;    // operands whose address has been computed
    uint64_t address[OPERANDS];
};

// A value with undefined bits.
struct item {
    uint64_t value, bits;
};

static const struct item NOTHING = {0, 0};

static inline uint64_t width_mask(unsigned width) {
    return width >= 64 ? ~0ul : (1ul << width) - 1;
}

// ---- registers (track.c) ----

static inline uint64_t general_bits(struct context *c, unsigned number) {
    if (!c->shadow->undefined[number])
        return 0;
    if (!c->origin)
        c->origin = c->shadow->origin[number];
    return c->shadow->general[number];
}
static inline void set_unit(struct context *c, unsigned unit, bool undefined) {
    c->shadow->undefined[unit] = undefined;
    if (undefined)
        c->shadow->origin[unit] = c->origin;
}
static inline void set_general_bits(struct context *c, unsigned number, uint64_t bits) {
    c->shadow->general[number] = bits;
    set_unit(c, SHADOW_UNIT_GENERAL + number, bits != 0);
}
static inline uint16_t condition_bits(struct context *c) {
    if (!c->shadow->undefined[SHADOW_UNIT_FLAGS])
        return 0;
    if (!c->origin)
        c->origin = c->shadow->origin[SHADOW_UNIT_FLAGS];
    return c->shadow->conditions;
}
static inline void set_conditions(struct context *c, uint16_t conditions) {
    c->shadow->conditions = conditions;
    set_unit(c, SHADOW_UNIT_FLAGS, conditions != 0);
}

// ---- operands of up to 64 bits (track/operand.c) ----

// Bits and value of an operand, shifted to bit 0, nothing above its size. Reading the bits of
// memory checks its address; the value of memory that cannot be read is 0.
uint64_t operand_bits_anywhere(struct context *, const struct track *, unsigned operand);
uint64_t operand_value(struct context *, const struct track *, unsigned operand);
// Writes as the processor would: 32-bit registers clear the upper half, smaller ones keep the rest.
void operand_set_bits_anywhere(struct context *, const struct track *, unsigned operand,
                               uint64_t bits);

// Most operands are whole registers.
static inline uint64_t operand_bits(struct context *c, const struct track *t, unsigned operand) {
    const struct track_operand *o = &t->operands[operand];
    if (o->kind == OPERAND_GENERAL && o->size >= 4)
        return general_bits(c, o->number) & width_mask(o->size * 8);
    return operand_bits_anywhere(c, t, operand);
}
static inline void operand_set_bits(struct context *c, const struct track *t, unsigned operand,
                                    uint64_t bits) {
    const struct track_operand *o = &t->operands[operand];
    if (o->kind == OPERAND_GENERAL && o->size >= 4)
        set_general_bits(c, o->number, bits & width_mask(o->size * 8));
    else
        operand_set_bits_anywhere(c, t, operand, bits);
}

// ---- memory (track/memory.c) ----

// The address of a memory operand; adds one finding if it is undefined.
uint64_t operand_address(struct context *, const struct track *, unsigned operand);
// Adds a finding if memory is not addressable. `bits` is filled with `size` bytes.
void memory_load(struct context *, uint64_t address, unsigned size, void *bits);
void memory_store(struct context *, uint64_t address, unsigned size, const void *bits);
uint64_t memory_load_word(struct context *, uint64_t address, unsigned size);
static inline void memory_store_word(struct context *c, uint64_t address, unsigned size,
                                     uint64_t bits) {
    memory_store(c, address, size, &bits);
}
uint64_t memory_value(uint64_t address, unsigned size);
void report_value(struct context *, unsigned size);
void report_condition(struct context *);

// Where undefined bytes come from; kept with shadow memory.

// ---- wide operands (track/wide.c) ----

enum { WIDE_WORDS = 8 };
typedef uint64_t wide[WIDE_WORDS];

static inline unsigned count_ones(uint64_t bits) {
    unsigned count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}
// As operand_bits; of registers all 64 bytes, of memory the rest is 0.
void wide_bits(struct context *, const struct track *, unsigned operand, wide bits);
void wide_value(struct context *, const struct track *, unsigned operand, wide value);
// Sets a whole register, or as much memory as the operand has.
void wide_set_bits(struct context *, const struct track *, unsigned operand, const wide bits);
uint64_t mask_bits(struct context *, unsigned number);
uint64_t mask_value(unsigned number);
uint64_t mmx_bits(struct context *, unsigned number);
void set_mmx_bits(struct context *, unsigned number, uint64_t bits);
// By physical number.
void x87_set(struct context *, unsigned number, uint64_t low, uint64_t high);
void x87_set_status(struct context *, uint16_t bits);
uint16_t x87_status_bits(struct context *);
unsigned x87_physical(unsigned number); // of a register counted from the top of the stack
void set_mask_bits(struct context *, unsigned number, uint64_t bits);
static inline bool wide_any(const wide bits) {
    uint64_t any = 0;
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        any |= bits[i];
    return any != 0;
}

// ---- conditions (track/flags.c) ----

// Results and conditions of an operation on `width` bits; carry: of adc and sbb, else zero.
uint64_t add_bits(struct item a, struct item b, struct item carry);
uint64_t subtract_bits(struct item a, struct item b, struct item carry);
uint16_t add_conditions(unsigned width, struct item a, struct item b, struct item carry);
uint16_t subtract_conditions(unsigned width, struct item a, struct item b, struct item carry);
uint16_t logic_conditions(unsigned width, struct item result);
enum { CONDITIONS_ALL = 0x1ff };
// Flags in their places in rflags; what they decide together is derived.
struct flags {
    uint32_t value, bits;
};
enum {
    FLAG_C = 1 << 0,
    FLAG_P = 1 << 2,
    FLAG_A = 1 << 4,
    FLAG_Z = 1 << 6,
    FLAG_S = 1 << 7,
    FLAG_O = 1 << 11,
    FLAGS_ALL = FLAG_C | FLAG_P | FLAG_A | FLAG_Z | FLAG_S | FLAG_O,
};
struct flags flags_now(struct context *);
bool track_condition_holds(unsigned condition, bool is_negated); // COND_*
uint16_t flags_conditions(struct flags);
// Z, S and P of a result.
void flags_of_result(struct flags *, unsigned width, struct item result);

// ---- ways of following ----

static inline track_function *set_variant(struct track *t, unsigned variant, track_function *run) {
    t->variant = variant;
    return run;
}

// NULL: not theirs.
track_function *track_branch(struct track *, const ZydisDecodedInstruction *);
track_function *track_control(struct track *, const ZydisDecodedInstruction *);
track_function *track_integer(struct track *, const ZydisDecodedInstruction *);
track_function *track_shift(struct track *, const ZydisDecodedInstruction *);
track_function *track_bits(struct track *, const ZydisDecodedInstruction *);
track_function *track_string(struct track *, const ZydisDecodedInstruction *);
track_function *track_vector(struct track *, const uint8_t *bytes, const ZydisDecodedInstruction *,
                             const ZydisDecodedOperand *);
track_function *track_x87(struct track *, const ZydisDecodedInstruction *);
track_function *track_state(struct track *, const ZydisDecodedInstruction *);
void track_state_start(void);
// Memory that lasts as long as what is prepared.
void *track_memory(size_t size);
// Nothing that bits could pass through.
bool track_is_inert(ZydisMnemonic);
// Whatever is not known better: any undefined bit makes all results undefined.
track_function track_fallback;

#endif
