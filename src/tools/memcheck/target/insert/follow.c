// Registers that may be undefined: versions of blocks, and instructions that are followed in C
// (docs/memcheck.md).
#include "tools/memcheck/target/insert/insert.h"

// ---- registers ---------------------------------------------------------------------------------

void follow_define(struct assembler *e, uint64_t units) {
    for (; units; units &= units - 1) {
        asm_mov_mem_imm(e, 8, asm_task(unit_field(__builtin_ctzl(units))), 0);
    }
}

// reg = the bytes of 8 units, or one of them; the others are 0, or in the set as well
static void write_load_units(struct assembler *e, unsigned reg, unsigned group, uint8_t units) {
    if (units & (units - 1)) {
        asm_load_field(e, reg, unit_field(8 * group));
        return;
    }
    asm_movzx_reg_mem(e, reg, 8, asm_task(unit_field(8 * group + __builtin_ctz(units))));
}

bool follow_is_vector_move(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_VMOVAPS:
    case ZYDIS_MNEMONIC_VMOVUPS:
    case ZYDIS_MNEMONIC_VMOVAPD:
    case ZYDIS_MNEMONIC_VMOVUPD:
    case ZYDIS_MNEMONIC_VMOVDQA:
    case ZYDIS_MNEMONIC_VMOVDQU:
    case ZYDIS_MNEMONIC_VMOVQ:
    case ZYDIS_MNEMONIC_VMOVD:
    case ZYDIS_MNEMONIC_VMOVSS:
    case ZYDIS_MNEMONIC_VMOVSD:
        return true;
    default:
        return false;
    }
}

// SSE moves into a whole register leave its upper parts as they are. They count as overwritten all
// the same: values that are undefined only there have come by AVX, which does not mix with SSE.
static bool is_whole_move(const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_PSHUFD:
        return true;
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD:
        return insn->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
    default:
        return follow_is_vector_move(insn->z.mnemonic);
    }
}

struct track_units follow_units(const struct insn *insn) {
    struct track_units units = track_units(&insn->z, insn->operands);
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    if (insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !is_whole_move(insn) ||
        to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->reg.value < ZYDIS_REGISTER_XMM0 ||
        to->reg.value > ZYDIS_REGISTER_XMM31)
        return units;
    uint64_t unit = 1ul << (SHADOW_UNIT_VECTOR + (to->reg.value - ZYDIS_REGISTER_XMM0));
    units.kills |= unit;
    if (from->type != ZYDIS_OPERAND_TYPE_REGISTER || from->reg.value != to->reg.value)
        units.reads &= ~unit;
    return units;
}

// If all of these units are defined, over to the version of `target` for which the rest may not be.
// Bytes are 0 or 1, so that sums of them do not overflow.
void follow_if_defined(struct checked_block *b, uint64_t units, uint64_t target) {
    struct assembler *e = b->code;
    unsigned groups = 0;
    for (unsigned group = 0; group < SHADOW_UNITS / 8; group++)
        groups += (units >> 8 * group & 0xff) != 0;
    bool first = true, second = groups > 1;
    asm_spill(e, RCX);
    if (second)
        asm_spill(e, RDX);
    insert_state(b->block, INSERT_WITHIN, 1u << RCX | (second ? 1u << RDX : 0));
    for (unsigned group = 0; group < SHADOW_UNITS / 8; group++) {
        uint8_t some = units >> 8 * group;
        if (!some)
            continue;
        write_load_units(e, first ? RCX : RDX, group, some);
        if (!first)
            asm_lea_sum(e, RCX, RCX, RDX);
        first = false;
    }
    struct asm_jump clear = asm_jrcxz(e);
    asm_unspill(e, RCX);
    if (second)
        asm_unspill(e, RDX);
    struct asm_jump over = asm_jmp_short(e);
    asm_land(e, clear);
    asm_unspill(e, RCX);
    if (second)
        asm_unspill(e, RDX);
    uint64_t all = b->units;
    checks_set_units(b, all & ~units);
    asm_align_patch(e, 1);
    insert_exit_by(b->block, asm_jmp_forward(e), target);
    checks_set_units(b, all);
    asm_land(e, over);
}

// Nobody hands flags over by a call or a return. Other registers that the convention leaves to the
// called function are not forgotten: compilers know what their own functions leave alone.
static const uint64_t dead_at_calls = UNIT(SHADOW_UNIT_FLAGS);

// ---- following ---------------------------------------------------------------------------------

struct followed {
    const struct track *prepared;
    uint64_t hidden; // units that it writes
};

__attribute__((target("general-regs-only"))) static void run_follower(void *argument) {
    const struct followed *followed = argument;
    struct shadow_registers *registers = tool_thread_state();
    track_run(followed->prepared);
    for (uint64_t units = followed->hidden; units; units &= units - 1)
        if (registers->undefined[__builtin_ctzl(units)])
            registers->any_hidden = true;
}

void follow_insn(struct checked_block *b, struct insn *insn) {
    struct compute compute;
    b->followed = true;
    if (compute_describe(b, insn, &compute)) {
        compute_write(b, &compute);
        return;
    }
    struct track_units units = follow_units(insn);
    const struct track *prepared = track_prepare(insn->pc, insn->bytes, &insn->z, insn->operands);
    if (!prepared)
        return;
    insert_state(b->block, INSERT_WITHIN, 0); // must not be done twice
    struct followed *followed = tool_allocate(sizeof *followed);
    *followed = (struct followed){prepared, units.writes & HIDDEN_UNITS};
    struct carry carry;
    bool is_carried = carry_describe(b, insn, &carry);
    struct asm_jump carried;
    if (is_carried)
        carried = carry_try(b, &carry);
    insert_saved_call(b->block, run_follower, followed);
    if (is_carried)
        carry_end(b, &carry, carried);
    // A stack pointer that is undefined leads nowhere anyway.
    uint64_t written = is_carried ? carry_written(&carry) : units.writes & ~UNIT(RSP);
    checks_set_units(b, b->units | written);
    // What is carried to a register is undefined: a check has just said so.
    b->written = is_carried ? 0 : written;
}

void follow_define_overwritten(struct checked_block *b, struct insn *insn) {
    struct track_units units = follow_units(insn);
    follow_define(b->code, units.kills & b->units);
    checks_set_units(b, b->units & ~units.kills);
}

bool follow_is_needed(const struct checked_block *b, struct insn *insn) {
    return b->units && follow_units(insn).reads & b->units;
}

void follow_forget_dead(struct checked_block *b, const struct insn *insn) {
    if (insn->z.meta.category != ZYDIS_CATEGORY_RET && insn->z.meta.category != ZYDIS_CATEGORY_CALL)
        return;
    follow_define(b->code, dead_at_calls & b->units);
    checks_set_units(b, b->units & ~dead_at_calls);
}

void follow_replaced(struct checked_block *b) {
    uint64_t dead = dead_at_calls | UNIT(RAX);
    follow_define(b->code, dead & b->units);
    checks_set_units(b, b->units & ~dead);
}
