// x87: by physical register, with the top of the stack as the processor has it.
//
// Moves are exact where nothing is converted; arithmetic makes a whole register undefined. The
// condition codes of the status word are tracked as a whole, by the bits that comparisons set.
#include "tools/memcheck/target/track/parts.h"

enum { STATUS_CONDITIONS = 0x4700, STATUS_TOP = 0x3800, SIGN_EXPONENT = 0xffff };

struct real {
    uint64_t low, high; // bits
};

static const struct real DEFINED = {0, 0}, UNDEFINED = {~0ul, SIGN_EXPONENT};

static unsigned top(void) {
    uint16_t status;
    __asm__ volatile("fnstsw %0" : "=a"(status));
    return status >> 11 & 7;
}

unsigned x87_physical(unsigned number) {
    return (top() + number) & 7;
}

static struct real get(struct context *c, unsigned number) {
    if (!c->shadow->undefined[SHADOW_UNIT_X87])
        return DEFINED;
    const uint64_t *bits = c->shadow->x87[x87_physical(number)];
    if ((bits[0] | bits[1]) && !c->origin)
        c->origin = c->shadow->origin[SHADOW_UNIT_X87];
    return (struct real){bits[0], bits[1]};
}

static void set(struct context *c, unsigned number, struct real bits) {
    x87_set(c, x87_physical(number), bits.low, bits.high);
}

// Into the register that will be the top.
static void push(struct context *c, struct real bits) {
    x87_set(c, x87_physical(7), bits.low, bits.high);
}

static struct real whole(bool undefined) {
    return undefined ? UNDEFINED : DEFINED;
}

static bool any(struct real bits) {
    return bits.low | bits.high;
}

static void set_status(struct context *c, bool undefined) {
    x87_set_status(c, undefined ? STATUS_CONDITIONS : 0);
}

// ---- loads and stores ----

// Reports about ten bytes are by pieces of four and two.
static unsigned piece_at(unsigned at, unsigned size) {
    return size != 10 ? size : at < 8 ? 4 : 2;
}

static struct real load(struct context *c, const struct track *t, unsigned operand) {
    uint64_t bits[2] = {0, 0}, address = operand_address(c, t, operand);
    unsigned size = t->operands[operand].size;
    for (unsigned at = 0; at < size; at += piece_at(at, size))
        memory_load(c, address + at, piece_at(at, size), (uint8_t *)bits + at);
    if (size == 10 && t->mnemonic == ZYDIS_MNEMONIC_FLD)
        return (struct real){bits[0], bits[1]};
    return whole(bits[0] | bits[1]);
}

static void run_load(struct context *c, const struct track *t) {
    const struct track_operand *o = &t->operands[0];
    struct real bits = DEFINED;
    if (o->kind == OPERAND_MEMORY)
        bits = load(c, t, 0);
    else if (t->mnemonic == ZYDIS_MNEMONIC_FLD)
        bits = get(c, t->variant);
    set_status(c, false);
    push(c, bits);
}

static void run_store(struct context *c, const struct track *t) {
    struct real bits = get(c, 0);
    set_status(c, false);
    if (t->operands[0].kind != OPERAND_MEMORY) {
        set(c, t->variant, bits);
        return;
    }
    unsigned size = t->operands[0].size;
    bool exact = size == 10 && t->mnemonic == ZYDIS_MNEMONIC_FSTP;
    uint64_t filled = any(bits) ? ~0ul : 0;
    uint64_t stored[2] = {exact ? bits.low : filled, exact ? bits.high : filled};
    uint64_t address = operand_address(c, t, 0);
    for (unsigned at = 0; at < size; at += piece_at(at, size))
        memory_store(c, address + at, piece_at(at, size), (uint8_t *)stored + at);
}

static void run_exchange(struct context *c, const struct track *t) {
    struct real a = get(c, 0), b = get(c, t->variant);
    set_status(c, false);
    set(c, 0, b);
    set(c, t->variant, a);
}

// ---- arithmetic ----

// Two operands, of which the first is the result's; memory counts for the second.
static void run_binary(struct context *c, const struct track *t) {
    bool has_memory = t->operands[0].kind == OPERAND_MEMORY;
    unsigned to = t->variant & 7, from = t->variant >> 3 & 7;
    struct real a = get(c, to), b = has_memory ? load(c, t, 0) : get(c, from);
    set_status(c, any(a) || any(b));
    set(c, to, whole(any(a) || any(b)));
}

// The top only. The sign is moved by fabs and fchs.
static void run_unary(struct context *c, const struct track *t) {
    struct real bits = get(c, 0);
    bool moves = t->mnemonic == ZYDIS_MNEMONIC_FABS || t->mnemonic == ZYDIS_MNEMONIC_FCHS;
    if (t->mnemonic == ZYDIS_MNEMONIC_FABS)
        bits.high &= 0x7fff;
    set_status(c, any(bits) && !moves);
    set(c, 0, moves ? bits : whole(any(bits)));
}

// fptan, fsincos, fxtract: one more value.
static void run_push_second(struct context *c, const struct track *t) {
    struct real bits = whole(any(get(c, 0)));
    set_status(c, any(bits));
    set(c, 0, bits);
    push(c, bits);
}

// fpatan, fyl2x, fyl2xp1: st1 from both, then pop.
static void run_two_to_one(struct context *c, const struct track *t) {
    bool undefined = any(get(c, 0)) || any(get(c, 1));
    set_status(c, undefined);
    set(c, 1, whole(undefined));
}

// fprem, fprem1, fscale.
static void run_top_by_second(struct context *c, const struct track *t) {
    bool undefined = any(get(c, 0)) || any(get(c, 1));
    set_status(c, undefined);
    set(c, 0, whole(undefined));
}

// ---- comparisons ----

static void run_compare(struct context *c, const struct track *t) {
    bool undefined = any(get(c, 0));
    if (t->operands[0].kind == OPERAND_MEMORY)
        undefined |= any(load(c, t, 0));
    else if (t->variant != 0xff)
        undefined |= any(get(c, t->variant));
    set_status(c, undefined);
}

static void run_compare_flags(struct context *c, const struct track *t) {
    bool undefined = any(get(c, 0)) || any(get(c, t->variant));
    set_status(c, false);
    set_conditions(c,
                   flags_conditions((struct flags){0, undefined ? FLAG_Z | FLAG_P | FLAG_C : 0}));
}

static void run_conditional(struct context *c, const struct track *t) {
    struct real a = get(c, 0), b = get(c, t->variant);
    if (condition_bits(c) >> t->condition & 1)
        a = whole(true);
    else if (track_condition_holds(t->condition, t->is_negated))
        a = b;
    set_status(c, false);
    set(c, 0, a);
}

static void run_store_status(struct context *c, const struct track *t) {
    operand_set_bits(c, t, 0, x87_status_bits(c));
}

static void run_clear_status(struct context *c, const struct track *t) {
    set_status(c, false);
}

// Environment and state: registers are in the image behind the environment, from the top of the
// stack on.
enum { ENVIRONMENT_SIZE = 28, SHORT_ENVIRONMENT_SIZE = 14, REGISTERS_SIZE = 80 };

// In an image that is one, or is the whole state.
static unsigned environment_size(const struct track *t) {
    unsigned size = t->operands[0].size;
    bool is_short = size < ENVIRONMENT_SIZE || size == SHORT_ENVIRONMENT_SIZE + REGISTERS_SIZE;
    return is_short ? SHORT_ENVIRONMENT_SIZE : ENVIRONMENT_SIZE;
}

static void run_store_state(struct context *c, const struct track *t) {
    uint64_t address = operand_address(c, t, 0);
    unsigned environment = environment_size(t);
    for (unsigned i = 0; i < environment; i += 2)
        memory_store_word(c, address + i, 2, i == environment / 7 ? x87_status_bits(c) : 0);
    if (t->mnemonic == ZYDIS_MNEMONIC_FNSTENV)
        return;
    for (unsigned i = 0; i < 8; i++) {
        struct real bits = get(c, i);
        uint64_t stored[2] = {bits.low, bits.high};
        memory_store(c, address + environment + 10 * i, 10, stored);
    }
    for (unsigned i = 0; i < 8; i++)
        x87_set(c, i, 0, 0);
    set_status(c, false);
}

static void run_load_state(struct context *c, const struct track *t) {
    uint64_t address = operand_address(c, t, 0);
    unsigned environment = environment_size(t);
    unsigned status_at = environment / 7;
    uint64_t status = memory_load_word(c, address + status_at, 2);
    x87_set_status(c, status & STATUS_CONDITIONS);
    if (t->mnemonic == ZYDIS_MNEMONIC_FLDENV)
        return;
    unsigned new_top = memory_value(address + status_at, 2) >> 11 & 7;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t bits[2] = {0, 0};
        memory_load(c, address + environment + 10 * i, 10, bits);
        if (status & STATUS_TOP)
            bits[0] = bits[1] = ~0ul;
        x87_set(c, (new_top + i) & 7, bits[0], bits[1]);
    }
}

static void run_reset(struct context *c, const struct track *t) {
    for (unsigned i = 0; i < 8 && t->mnemonic != ZYDIS_MNEMONIC_FNCLEX; i++)
        x87_set(c, i, 0, 0);
    set_status(c, false);
}

// ---- which is which ----

// Numbers of the named stack registers: the first, and the second times eight.
static unsigned stack_numbers(const struct track *t) {
    unsigned numbers = 0, found = 0;
    for (unsigned i = 0; i < t->operand_count && found < 2; i++)
        if (t->operands[i].kind == OPERAND_X87)
            numbers |= t->operands[i].number << 3 * found++;
    return numbers;
}

// The named register that is not the top, or the top.
static unsigned other_number(const struct track *t) {
    unsigned numbers = stack_numbers(t);
    return numbers & 7 ? numbers & 7 : numbers >> 3;
}

static track_function *with(struct track *t, unsigned variant, track_function *run) {
    t->variant = variant;
    return run;
}

static track_function *conditional(struct track *t, unsigned condition, bool is_negated) {
    t->condition = condition;
    t->is_negated = is_negated;
    return with(t, other_number(t), run_conditional);
}

static track_function *comparison(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_FCOM:
    case ZYDIS_MNEMONIC_FCOMP:
    case ZYDIS_MNEMONIC_FCOMPP:
    case ZYDIS_MNEMONIC_FUCOM:
    case ZYDIS_MNEMONIC_FUCOMP:
    case ZYDIS_MNEMONIC_FUCOMPP:
    case ZYDIS_MNEMONIC_FICOM:
    case ZYDIS_MNEMONIC_FICOMP:
        return with(t, other_number(t), run_compare);
    case ZYDIS_MNEMONIC_FTST:
    case ZYDIS_MNEMONIC_FXAM:
        return with(t, 0xff, run_compare);
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP:
        return with(t, other_number(t), run_compare_flags);
    case ZYDIS_MNEMONIC_FCMOVB:
        return conditional(t, COND_B, false);
    case ZYDIS_MNEMONIC_FCMOVNB:
        return conditional(t, COND_B, true);
    case ZYDIS_MNEMONIC_FCMOVE:
        return conditional(t, COND_Z, false);
    case ZYDIS_MNEMONIC_FCMOVNE:
        return conditional(t, COND_Z, true);
    case ZYDIS_MNEMONIC_FCMOVBE:
        return conditional(t, COND_BE, false);
    case ZYDIS_MNEMONIC_FCMOVNBE:
        return conditional(t, COND_BE, true);
    case ZYDIS_MNEMONIC_FCMOVU:
        return conditional(t, COND_P, false);
    case ZYDIS_MNEMONIC_FCMOVNU:
        return conditional(t, COND_P, true);
    default:
        return NULL;
    }
}

static track_function *arithmetic(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_FADD:
    case ZYDIS_MNEMONIC_FADDP:
    case ZYDIS_MNEMONIC_FSUB:
    case ZYDIS_MNEMONIC_FSUBP:
    case ZYDIS_MNEMONIC_FSUBR:
    case ZYDIS_MNEMONIC_FSUBRP:
    case ZYDIS_MNEMONIC_FMUL:
    case ZYDIS_MNEMONIC_FMULP:
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
        return with(t, stack_numbers(t), run_binary);
    case ZYDIS_MNEMONIC_FIADD:
    case ZYDIS_MNEMONIC_FISUB:
    case ZYDIS_MNEMONIC_FISUBR:
    case ZYDIS_MNEMONIC_FIMUL:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FIDIVR:
        return with(t, 0, run_binary);
    case ZYDIS_MNEMONIC_FABS:
    case ZYDIS_MNEMONIC_FCHS:
    case ZYDIS_MNEMONIC_FSQRT:
    case ZYDIS_MNEMONIC_FRNDINT:
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FCOS:
        return run_unary;
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FXTRACT:
        return run_push_second;
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FYL2XP1:
        return run_two_to_one;
    case ZYDIS_MNEMONIC_FPREM:
    case ZYDIS_MNEMONIC_FPREM1:
    case ZYDIS_MNEMONIC_FSCALE:
        return run_top_by_second;
    default:
        return NULL;
    }
}

static track_function *movement(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_FLD:
    case ZYDIS_MNEMONIC_FILD:
    case ZYDIS_MNEMONIC_FBLD:
    case ZYDIS_MNEMONIC_FLD1:
    case ZYDIS_MNEMONIC_FLDZ:
    case ZYDIS_MNEMONIC_FLDPI:
    case ZYDIS_MNEMONIC_FLDL2E:
    case ZYDIS_MNEMONIC_FLDL2T:
    case ZYDIS_MNEMONIC_FLDLG2:
    case ZYDIS_MNEMONIC_FLDLN2:
        return with(t, t->operands[0].kind == OPERAND_X87 ? other_number(t) : 0, run_load);
    case ZYDIS_MNEMONIC_FST:
    case ZYDIS_MNEMONIC_FSTP:
    case ZYDIS_MNEMONIC_FIST:
    case ZYDIS_MNEMONIC_FISTP:
    case ZYDIS_MNEMONIC_FISTTP:
    case ZYDIS_MNEMONIC_FBSTP:
        return with(t, other_number(t), run_store);
    case ZYDIS_MNEMONIC_FXCH:
        return with(t, other_number(t), run_exchange);
    case ZYDIS_MNEMONIC_FFREE:
    case ZYDIS_MNEMONIC_FFREEP:
    case ZYDIS_MNEMONIC_FINCSTP:
    case ZYDIS_MNEMONIC_FDECSTP:
    case ZYDIS_MNEMONIC_FNOP:
    case ZYDIS_MNEMONIC_FLDCW:
        return run_clear_status;
    case ZYDIS_MNEMONIC_FNSTSW:
        return run_store_status;
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
        return run_store_state;
    case ZYDIS_MNEMONIC_FLDENV:
    case ZYDIS_MNEMONIC_FRSTOR:
        return run_load_state;
    case ZYDIS_MNEMONIC_FNINIT:
    case ZYDIS_MNEMONIC_FNCLEX:
        return run_reset;
    default:
        return NULL;
    }
}

track_function *track_x87(struct track *t, const ZydisDecodedInstruction *z) {
    if (z->meta.isa_ext != ZYDIS_ISA_EXT_X87)
        return NULL;
    track_function *run = movement(t, z);
    if (!run)
        run = comparison(t, z);
    return run ? run : arithmetic(t, z);
}
