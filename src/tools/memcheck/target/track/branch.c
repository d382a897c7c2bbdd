// Conditional jumps.
//
// Compilers turn `a && b` around where testing b first does no harm: then the first of two jumps
// may depend on something that was never set, and the second one leads to the same place whatever
// the first has done. So before a jump is reported, the comparison and the jump behind it are
// looked at.
#include "tools/memcheck/target/track/parts.h"

// What follows a jump that is not taken, if it is nothing but a comparison of registers and numbers
// and another jump.
struct second_jump {
    struct track *compare;
    uint64_t first;        // where the jump before it leads
    uint64_t target, next; // where it leads itself
    uint8_t condition;
    bool is_negated;
};

enum { INSN_MOST = 15 };

// ---- preparing ---------------------------------------------------------------------------------

static bool decode(uint64_t pc, uint8_t *bytes, ZydisDecodedInstruction *z,
                   ZydisDecodedOperand *operands) {
    static ZydisDecoder decoder;
    static bool is_ready;
    if (!is_ready)
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    is_ready = true;
    size_t size = INSN_MOST;
    while (size && tool_read(bytes, pc, size) != 0)
        size--; // code may end with its page
    return size && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, z, operands));
}

static bool is_comparison(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands) {
    return (z->mnemonic == ZYDIS_MNEMONIC_CMP || z->mnemonic == ZYDIS_MNEMONIC_TEST) &&
           operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[1].type != ZYDIS_OPERAND_TYPE_MEMORY;
}

// Not jrcxz and loop.
static bool is_conditional(const ZydisDecodedInstruction *z) {
    unsigned opcode = z->opcode & 0xf0;
    return z->meta.category == ZYDIS_CATEGORY_COND_BR && (opcode == 0x70 || opcode == 0x80);
}

static void look_ahead(struct track *t, uint64_t next) {
    ZydisDecodedInstruction compare, jump;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT], target[ZYDIS_MAX_OPERAND_COUNT];
    uint8_t bytes[INSN_MOST], more[INSN_MOST];
    struct second_jump second = {.first = next + t->operands[0].immediate};
    if (!decode(next, bytes, &compare, operands) || !is_comparison(&compare, operands))
        return;
    second.next = next + compare.length;
    if (!decode(second.next, more, &jump, target) || !is_conditional(&jump))
        return;
    second.next += jump.length;
    second.target = second.next + target[0].imm.value.s;
    if (second.target != second.first && second.next != second.first)
        return;
    second.compare = track_prepare(next, bytes, &compare, operands);
    second.condition = (jump.opcode & 15) >> 1;
    second.is_negated = jump.opcode & 1;
    struct second_jump *kept = track_memory(sizeof *kept);
    *kept = second;
    t->second = kept;
}

// ---- following ---------------------------------------------------------------------------------

static int64_t extend(uint64_t value, unsigned width) {
    return (int64_t)(value << (64 - width)) >> (64 - width);
}

// Whether a condition holds after the comparison.
static bool holds_after(struct context *c, const struct track *t, unsigned condition) {
    uint64_t a = operand_value(c, t, 0) & width_mask(t->width),
             b = operand_value(c, t, 1) & width_mask(t->width);
    bool tests = t->mnemonic == ZYDIS_MNEMONIC_TEST;
    uint64_t result = (tests ? a & b : a - b) & width_mask(t->width);
    bool is_zero = result == 0, sign = extend(result, t->width) < 0;
    bool below = !tests && a < b;
    bool less = tests ? sign : extend(a, t->width) < extend(b, t->width);
    switch (condition) {
    case COND_O:
        return less != sign;
    case COND_B:
        return below;
    case COND_Z:
        return is_zero;
    case COND_BE:
        return below || is_zero;
    case COND_S:
        return sign;
    case COND_L:
        return less;
    case COND_LE:
        return less || is_zero;
    default:
        return !(count_ones(result & 0xff) & 1);
    }
}

// Both jumps lead to where the first one does if it is taken.
static bool is_settled(struct context *c, const struct second_jump *second) {
    struct shadow_registers *shadow = c->shadow;
    uint16_t conditions = shadow->conditions;
    uint32_t origin = shadow->origin[SHADOW_UNIT_FLAGS], first = c->origin;
    second->compare->run(c, second->compare);
    bool unsure =
        shadow->undefined[SHADOW_UNIT_FLAGS] && shadow->conditions >> second->condition & 1;
    shadow->conditions = conditions;
    shadow->undefined[SHADOW_UNIT_FLAGS] = true;
    shadow->origin[SHADOW_UNIT_FLAGS] = origin;
    c->origin = first;
    if (unsure)
        return false;
    bool taken = holds_after(c, second->compare, second->condition) != second->is_negated;
    return (taken ? second->target : second->next) == second->first;
}

static void run(struct context *c, const struct track *t) {
    if (!(condition_bits(c) >> t->condition & 1))
        return;
    if (!t->second || !is_settled(c, t->second))
        report_condition(c);
}

track_function *track_branch(struct track *t, const ZydisDecodedInstruction *z) {
    if (!is_conditional(z))
        return NULL;
    t->condition = (z->opcode & 15) >> 1;
    look_ahead(t, t->pc + z->length);
    return run;
}
