// Hidden units (insert.h): what a block does about them at its head.
#include <string.h>

#include "tools/memcheck/target/insert/insert.h"

static bool touches_hidden(const ZydisDecodedOperand *operand) {
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ((operand->reg.value >= ZYDIS_REGISTER_XMM0 &&
             operand->reg.value <= ZYDIS_REGISTER_ZMM31) ||
            (operand->reg.value >= ZYDIS_REGISTER_K0 && operand->reg.value <= ZYDIS_REGISTER_K7) ||
            (operand->reg.value >= ZYDIS_REGISTER_ST0 && operand->reg.value <= ZYDIS_REGISTER_MM7));
}

static bool uses_hidden_units(struct insn *insn) {
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (touches_hidden(&insn->operands[i]))
            return true;
    switch (insn->z.meta.category) {
    case ZYDIS_CATEGORY_X87_ALU:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_MMX:
    case ZYDIS_CATEGORY_SSE:
        return true;
    default: // vzeroupper and its kin
        return insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ||
               insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
    }
}

enum { CLEARED_AT_HEAD = 4, LOOKED_AT_SINGLY = 6 };

// What a block does to the units that are undefined at its head, whatever way it goes.
struct head_units {
    uint64_t overwritten; // before they are read
    uint64_t hidden;      // hidden ones that it touches in another way
};

static struct head_units head_units(const struct checked_block *b) {
    unsigned count;
    struct insn *all = insert_all(b->block, &count);
    struct head_units head = {0};
    uint64_t read = 0;
    bool branched = false;
    for (unsigned i = 0; i < count; i++) {
        struct insn *insn = &all[i];
        branched |= insn->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
                    insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
        insn_operands(insn);
        struct track_units units = follow_units(insn);
        uint64_t touched = (units.reads | units.writes | units.kills) & HIDDEN_UNITS;
        if (!touched && uses_hidden_units(insn))
            touched = HIDDEN_UNITS;
        if (!branched) {
            read |= (units.reads | (touched & ~units.kills)) & ~head.overwritten;
            uint64_t kills = units.kills & ~read;
            if (__builtin_popcountl((head.overwritten | kills) & HIDDEN_UNITS) > CLEARED_AT_HEAD)
                kills &= ~HIDDEN_UNITS;
            head.overwritten |= kills;
        }
        head.hidden |= touched & ~head.overwritten;
        read |= head.hidden;
    }
    return head;
}

// Of the calling thread; whole eights from `first` on.
__attribute__((target("general-regs-only"))) uint64_t undefined_units(unsigned first,
                                                                      unsigned last) {
    const struct shadow_registers *registers = tool_thread_state();
    uint64_t units = 0, word;
    for (unsigned group = first / 8; group < last / 8; group++) {
        memcpy(&word, registers->undefined + 8 * group, sizeof word);
        for (; word; word &= word - 1)
            units |= 1ul << (8 * group + __builtin_ctzl(word) / 8);
    }
    return units;
}

// A block that touches hidden units.
struct hidden_site {
    uint64_t version; // the units that its version is for
    uint64_t units;   // hidden ones that matter to it
};

__attribute__((target("general-regs-only"))) static bool choose_version(void *argument,
                                                                        uint64_t *set) {
    const struct hidden_site *site = argument;
    struct shadow_registers *registers = tool_thread_state();
    uint64_t units = undefined_units(SHADOW_UNIT_X87 & ~7u, SHADOW_UNITS) & HIDDEN_UNITS;
    registers->any_hidden = units != 0;
    units &= site->units;
    *set = units | site->version;
    return units != 0;
}

// Jumps if the byte is not 0; rcx is spilled.
static struct asm_jump write_look(struct assembler *e, unsigned field) {
    asm_movzx_reg_mem(e, RCX, 8, asm_task(field));
    struct asm_jump zero = asm_jrcxz(e), found = asm_jmp_forward(e);
    asm_land(e, zero);
    return found;
}

// Over to another version, out of line, if some of the units are undefined.
static void write_hidden_check(struct checked_block *b, uint64_t units) {
    struct assembler *e = b->code;
    unsigned field = units & (units - 1) ? ANY_HIDDEN : unit_field(__builtin_ctzl(units));
    b->hidden = (struct hidden_check){.units = units};
    if (insert_flags_are_dead(b->block)) {
        asm_cmp_mem_imm(e, 8, asm_task(field), 0);
        b->hidden.jump = asm_jcc_forward(e, ASM_NOT_EQUAL);
    } else {
        b->hidden.spills = true;
        asm_spill(e, RCX);
        insert_state(b->block, INSERT_WITHIN, 1u << RCX);
        b->hidden.jump = write_look(e, field);
        asm_unspill(e, RCX);
    }
    b->hidden.back = e->at;
}

void hidden_end(struct checked_block *b) {
    const struct hidden_check *check = &b->hidden;
    struct assembler *e = b->code;
    if (!check->units)
        return;
    struct hidden_site *site = tool_allocate(sizeof *site);
    *site = (struct hidden_site){b->version.set, check->units};
    struct asm_jump found[LOOKED_AT_SINGLY];
    unsigned looks = 0;
    insert_for_pc(b->block, insert_block_pc(b->block));
    checks_set_units(b, b->version.set);
    insert_state(b->block, INSERT_WITHIN, check->spills ? 1u << RCX : 0);
    asm_land(e, check->jump);
    if (!check->spills)
        asm_spill(e, RCX);
    insert_state(b->block, INSERT_WITHIN, 1u << RCX);
    if (__builtin_popcountl(check->units) <= LOOKED_AT_SINGLY) {
        for (uint64_t rest = check->units; rest; rest &= rest - 1)
            found[looks++] = write_look(e, unit_field(__builtin_ctzl(rest)));
        asm_unspill(e, RCX);
        asm_jmp(e, (uint64_t)check->back);
    }
    for (unsigned i = 0; i < looks; i++)
        asm_land(e, found[i]);
    asm_unspill(e, RCX);
    insert_switch(b->block, choose_version, site, check->back);
}

void hidden_head(struct checked_block *b) {
    struct head_units head = head_units(b);
    uint64_t start = insert_block_pc(b->block);
    uint64_t dead = head.overwritten & b->units;
    if (!b->force && dead && !(b->units & HIDDEN_UNITS)) { // the version without them does
        follow_define(b->code, dead);
        checks_set_units(b, b->units & ~dead);
        insert_exit(b->block, start);
        return;
    }
    if (!b->force && b->units && !(b->units & HIDDEN_UNITS))
        follow_if_defined(b, b->units, start);
    follow_define(b->code, head.overwritten & HIDDEN_UNITS & ~b->units);
    if (head.hidden & ~b->units)
        write_hidden_check(b, head.hidden & ~b->units);
}
