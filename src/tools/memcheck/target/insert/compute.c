// Instructions between general registers whose undefined bits generated code computes: moves,
// logic, shifts by a constant, and additions to which one side brings no undefined bits. They are
// most of what programs do with bit fields and with structures that are only partly set.
//
// The C functions in track/ say what is right; the formulas here are theirs, written for the side
// that may be undefined. What flags become is not computed: nobody may want them behind the
// instruction, and the code uses flags itself. Origins are kept by C code only.
#include "tools/memcheck/target/insert/insert.h"

static unsigned general_field(unsigned reg) {
    return INSERT_THREAD_STATE + offsetof(struct memcheck_thread, registers.general) + 8 * reg;
}

// ---- which instructions ------------------------------------------------------------------------

// A whole register, or its low part; rsp has rules of its own.
static bool is_low_register(const ZydisDecodedOperand *operand) {
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operand->reg.value >= ZYDIS_REGISTER_AL && operand->reg.value <= ZYDIS_REGISTER_R15 &&
           (operand->reg.value < ZYDIS_REGISTER_AH || operand->reg.value > ZYDIS_REGISTER_BH) &&
           register_number(operand->reg.value) != RSP;
}

static bool take_source(struct compute *it, const ZydisDecodedOperand *from) {
    it->has_source = is_low_register(from);
    if (it->has_source)
        it->from = register_number(from->reg.value);
    else
        it->immediate = (int32_t)from->imm.value.u;
    return it->has_source || from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static bool take_move(struct compute *it, const struct insn *insn, bool is_signed) {
    it->kind = COMPUTE_MOVE;
    it->is_signed = is_signed;
    it->from_width = insn->operands[1].size;
    return take_source(it, &insn->operands[1]) && it->has_source;
}

// cdqe and cwde: the register's lower half is the source.
static bool take_widening(struct compute *it) {
    it->kind = COMPUTE_MOVE;
    it->is_signed = true;
    it->has_source = true;
    it->from = it->to;
    it->from_width = it->width / 2;
    return true;
}

static bool take_shift(struct compute *it, const struct insn *insn, enum compute_kind kind) {
    it->kind = kind;
    it->writes_flags = true;
    if (!take_source(it, &insn->operands[1]) || it->has_source)
        return false;
    it->immediate &= it->width - 1;
    return it->immediate;
}

static bool take_two(struct compute *it, const struct insn *insn, enum compute_kind kind) {
    it->kind = kind;
    it->writes_flags = true;
    return take_source(it, &insn->operands[1]) && !(it->has_source && it->from == it->to);
}

static bool take_one(struct compute *it, int32_t added) {
    it->kind = COMPUTE_ADD;
    it->writes_flags = true;
    it->immediate = added;
    return true;
}

static bool take(struct compute *it, const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
        return take_move(it, insn, false);
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        return take_move(it, insn, true);
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWDE:
        return take_widening(it);
    case ZYDIS_MNEMONIC_AND:
        return take_two(it, insn, COMPUTE_AND);
    case ZYDIS_MNEMONIC_OR:
        return take_two(it, insn, COMPUTE_OR);
    case ZYDIS_MNEMONIC_XOR:
        return take_two(it, insn, COMPUTE_XOR);
    case ZYDIS_MNEMONIC_ADD:
        return take_two(it, insn, COMPUTE_ADD);
    case ZYDIS_MNEMONIC_SUB:
        return take_two(it, insn, COMPUTE_SUBTRACT);
    case ZYDIS_MNEMONIC_INC:
        return take_one(it, 1);
    case ZYDIS_MNEMONIC_DEC:
        return take_one(it, -1);
    case ZYDIS_MNEMONIC_SHL:
        return take_shift(it, insn, COMPUTE_SHL);
    case ZYDIS_MNEMONIC_SHR:
        return take_shift(it, insn, COMPUTE_SHR);
    case ZYDIS_MNEMONIC_SAR:
        return take_shift(it, insn, COMPUTE_SAR);
    default:
        return false;
    }
}

static bool may_be_undefined(const struct checked_block *b, unsigned reg) {
    return b->units & UNIT(SHADOW_UNIT_GENERAL + reg);
}

// A sum is computed from one undefined side; of a difference, the first.
static bool is_simple_sum(const struct checked_block *b, const struct compute *it) {
    if (it->kind == COMPUTE_SUBTRACT)
        return !it->has_source || !may_be_undefined(b, it->from);
    return it->kind != COMPUTE_ADD || !it->has_source ||
           !(may_be_undefined(b, it->from) && may_be_undefined(b, it->to));
}

bool compute_describe(const struct checked_block *b, const struct insn *insn, struct compute *it) {
    const ZydisDecodedOperand *to = &insn->operands[0];
    *it = (struct compute){0};
    if (track_origins || insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
        !is_low_register(to) || to->size < 32)
        return false;
    it->to = register_number(to->reg.value);
    it->width = to->size;
    return take(it, insn) && is_simple_sum(b, it) && insert_flags_are_dead(b->block) &&
           insert_flags_are_dead_behind(b->block);
}

// ---- code --------------------------------------------------------------------------------------

static const uint16_t scratch = 1u << RCX | 1u << RDX | 1u << RSI | 1u << RDI;

// The register's value, whether it is spilled or not.
static void load_value(struct assembler *e, unsigned to, unsigned reg) {
    if (scratch >> reg & 1)
        asm_load_field(e, to, TASK_SPILL + 8 * reg);
    else
        asm_mov_reg_reg(e, 64, to, reg);
}

// rcx = the register's undefined bits
static void load_bits(struct checked_block *b, unsigned reg) {
    struct assembler *e = b->code;
    if (!may_be_undefined(b, reg)) {
        asm_mov_reg_imm(e, RCX, 0);
        return;
    }
    asm_movzx_reg_mem(e, RCX, 8, asm_task(unit_field(SHADOW_UNIT_GENERAL + reg)));
    struct asm_jump defined = asm_jrcxz(e);
    asm_load_field(e, RCX, general_field(reg));
    asm_land(e, defined);
}

static void write_move(struct checked_block *b, const struct compute *it) {
    struct assembler *e = b->code;
    load_bits(b, it->from);
    if (it->is_signed) {
        asm_shl_reg_imm(e, 64, RCX, 64 - it->from_width);
        asm_sar_reg_imm(e, 64, RCX, 64 - it->from_width);
    } else if (it->from_width < 32) {
        asm_movzx_reg_reg(e, RCX, it->from_width, RCX);
    }
    if (it->width == 32)
        asm_mov_reg_reg(e, 32, RCX, RCX);
}

static void write_shift(struct checked_block *b, const struct compute *it) {
    struct assembler *e = b->code;
    load_bits(b, it->to);
    if (it->kind == COMPUTE_SHL)
        asm_shl_reg_imm(e, it->width, RCX, it->immediate);
    else if (it->kind == COMPUTE_SHR)
        asm_shr_reg_imm(e, it->width, RCX, it->immediate);
    else
        asm_sar_reg_imm(e, it->width, RCX, it->immediate);
}

// rdx = ones where the other side, which has this value and the undefined bits in `bits` (none:
// -1), lets an undefined bit through: where it may be 1 for and, 0 for or.
static void load_passing(struct checked_block *b, const struct compute *it, unsigned reg,
                         unsigned to, int bits) {
    struct assembler *e = b->code;
    load_value(e, to, reg);
    if (it->kind == COMPUTE_OR)
        asm_not_reg(e, it->width, to);
    if (bits >= 0)
        asm_or_reg_reg(e, it->width, to, bits);
}

static void write_logic_constant(struct checked_block *b, const struct compute *it) {
    load_bits(b, it->to);
    if (it->kind == COMPUTE_AND)
        asm_and_reg_imm(b->code, it->width, RCX, it->immediate);
    else if (it->kind == COMPUTE_OR)
        asm_and_reg_imm(b->code, it->width, RCX, ~it->immediate);
    else if (it->width == 32)
        asm_mov_reg_reg(b->code, 32, RCX, RCX);
}

// One side may be undefined.
static void write_logic_one(struct checked_block *b, const struct compute *it, unsigned undefined,
                            unsigned other) {
    struct assembler *e = b->code;
    load_bits(b, undefined);
    if (it->kind == COMPUTE_XOR) {
        if (it->width == 32)
            asm_mov_reg_reg(e, 32, RCX, RCX);
        return;
    }
    load_passing(b, it, other, RDX, -1);
    asm_and_reg_reg(e, it->width, RCX, RDX);
}

static void write_logic(struct checked_block *b, const struct compute *it) {
    struct assembler *e = b->code;
    if (!it->has_source) {
        write_logic_constant(b, it);
        return;
    }
    if (!may_be_undefined(b, it->from) || !may_be_undefined(b, it->to)) {
        bool is_source = may_be_undefined(b, it->from);
        write_logic_one(b, it, is_source ? it->from : it->to, is_source ? it->to : it->from);
        return;
    }
    load_bits(b, it->from);
    asm_mov_reg_reg(e, 64, RDX, RCX);
    load_bits(b, it->to);
    if (it->kind != COMPUTE_XOR) {
        load_passing(b, it, it->to, RSI, RCX);
        load_passing(b, it, it->from, RDI, RDX);
        asm_and_reg_reg(e, it->width, RSI, RDI);
    }
    asm_or_reg_reg(e, it->width, RCX, RDX);
    if (it->kind != COMPUTE_XOR)
        asm_and_reg_reg(e, it->width, RCX, RSI);
}

// The least and the greatest value that the undefined side may have, each plus the other side: what
// differs between the sums is undefined, and so are the bits themselves.
static void write_sum(struct checked_block *b, const struct compute *it) {
    struct assembler *e = b->code;
    bool is_source = it->has_source && may_be_undefined(b, it->from);
    unsigned undefined = is_source ? it->from : it->to, other = is_source ? it->to : it->from;
    load_bits(b, undefined);
    load_value(e, RDX, undefined);
    asm_or_reg_reg(e, it->width, RDX, RCX);
    asm_mov_reg_reg(e, it->width, RSI, RDX);
    asm_xor_reg_reg(e, it->width, RSI, RCX);
    if (it->has_source)
        load_value(e, RDI, other);
    else
        asm_mov_reg_imm(e, RDI, (uint64_t)(int64_t)it->immediate);
    if (it->kind == COMPUTE_SUBTRACT) {
        asm_not_reg(e, 64, RDI);
        asm_inc_reg(e, 64, RDI);
    }
    asm_add_reg_reg(e, it->width, RDX, RDI);
    asm_add_reg_reg(e, it->width, RSI, RDI);
    asm_xor_reg_reg(e, it->width, RDX, RSI);
    asm_or_reg_reg(e, it->width, RCX, RDX);
}

static void spill_all(struct assembler *e, uint16_t spilled) {
    for (unsigned reg = 0; reg < 16; reg++)
        if (spilled >> reg & 1)
            asm_spill(e, reg);
}

static void unspill_all(struct assembler *e, uint16_t spilled) {
    for (unsigned reg = 0; reg < 16; reg++)
        if (spilled >> reg & 1)
            asm_unspill(e, reg);
}

static uint16_t scratch_for(const struct compute *it) {
    bool is_alone = it->kind == COMPUTE_MOVE || it->kind >= COMPUTE_SHL;
    bool is_sum = it->kind == COMPUTE_ADD || it->kind == COMPUTE_SUBTRACT;
    return is_alone || (!it->has_source && !is_sum) ? 1u << RCX : scratch;
}

void compute_write(struct checked_block *b, const struct compute *it) {
    static void (*const writers[])(struct checked_block *, const struct compute *) = {
        [COMPUTE_MOVE] = write_move, [COMPUTE_AND] = write_logic, [COMPUTE_OR] = write_logic,
        [COMPUTE_XOR] = write_logic, [COMPUTE_ADD] = write_sum,   [COMPUTE_SUBTRACT] = write_sum,
        [COMPUTE_SHL] = write_shift, [COMPUTE_SHR] = write_shift, [COMPUTE_SAR] = write_shift};
    struct assembler *e = b->code;
    uint16_t spilled = scratch_for(it);
    uint64_t flags = it->writes_flags ? UNIT(SHADOW_UNIT_FLAGS) : 0;
    uint64_t unit = UNIT(SHADOW_UNIT_GENERAL + it->to);
    spill_all(e, spilled);
    insert_state(b->block, INSERT_WITHIN, spilled); // must not be done twice
    writers[it->kind](b, it);
    asm_store_field(e, RCX, general_field(it->to));
    asm_test_reg_reg(e, 64, RCX, RCX);
    asm_setcc(e, ASM_NOT_EQUAL, RCX);
    asm_mov_mem_reg(e, 8, asm_task(unit_field(SHADOW_UNIT_GENERAL + it->to)), RCX);
    unspill_all(e, spilled);
    insert_state(b->block, INSERT_WITHIN, 0);
    follow_define(e, flags & b->units);
    checks_set_units(b, (b->units | unit) & ~flags);
    b->written = unit;
}
