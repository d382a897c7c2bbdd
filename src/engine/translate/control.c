// Control flow: every branch becomes an exit of the block or a look-up of its destination.
//
// Indirect branches never leave the cache when their destination is known. With rcx spilled and
// the destination in it, the low area's table gives the offset of the destination's code in the
// cache; offset 0 is the gate for destinations that are not in the table. No flags, no compare.
// A destination outside the table reads unmapped memory or a non-canonical address (layout.h): the
// fault handler sends it to the same gate. Once there is code above 4 GiB, the upper half of the
// destination is tested first. Without a jump table, each branch takes the way of such code.
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/translate/builder.h"

static void write_push_return(struct assembler *a, uint64_t address) {
    asm_push_imm(a, (int32_t)address);
    if (address != (uint64_t)(int32_t)address)
        asm_mov_mem_imm(a, 32, asm_at(RSP, 4), address >> 32);
}

// Among the versions other than 0. A destination that cannot exist comes to the dispatcher, too.
static void write_version_lookup(struct builder *b, uint64_t pc, uint64_t after_call) {
    unsigned version = version_number(b->exit_set, false);
    builder_note_branch(b, pc);
    if (after_call)
        write_push_return(&b->code, after_call);
    asm_store_field_imm(&b->code, TASK_EXIT_VERSION, version);
    asm_mov_reg_imm(&b->code, RCX, cache_version_key(version));
    asm_jmp(&b->code, cache_gate_version_lookup);
    b->ended = true;
}

// The destination is in rcx and, already, in self->jump_target. A call pushes its return address
// (after_call, else 0) after the look-up: a destination that cannot exist is refused before.
static void write_lookup(struct builder *b, uint64_t pc, uint64_t after_call) {
    struct assembler *a = &b->code;
    if (b->exit_set) {
        write_version_lookup(b, pc, after_call);
        return;
    }
    if (cache_lookup != LOOKUP_TABLE) {
        // Not reached by faults: the dispatcher must know the branch to refuse its destination.
        builder_note_branch(b, pc);
        if (after_call)
            write_push_return(a, after_call);
        if (cache_lookup == LOOKUP_KEYS) {
            asm_jmp(a, cache_gate_high_lookup);
            b->ended = true;
            return;
        }
        asm_load_field32(a, RCX, TASK_JUMP_TARGET + 4);
        struct asm_jump low = asm_jrcxz(a);
        asm_jmp(a, cache_gate_high_lookup);
        asm_land(a, low);
        asm_load_field32(a, RCX, TASK_JUMP_TARGET);
    }
    builder_state(b, STATE_LOOKUP, 1u << RCX);
    asm_mov_reg_mem(a, 32, RCX, asm_indexed(ASM_NONE, RCX, 2, JUMP_TABLE));
    builder_state(b, STATE_WITHIN, 1u << RCX);
    asm_lea(a, 64, RCX, asm_at32(RCX, cache_start));
    if (after_call && cache_lookup == LOOKUP_TABLE)
        write_push_return(a, after_call);
    asm_jmp_reg(a, RCX);
    b->ended = true;
}

static void begin_indirect(struct builder *b) {
    asm_spill(&b->code, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
}

static void translate_indirect(struct builder *b, struct insn *insn, bool is_call) {
    insn_operands(insn);
    begin_indirect(b);
    translate_load_operand(b, insn, &insn->operands[0]);
    asm_store_field(&b->code, RCX, TASK_JUMP_TARGET);
    write_lookup(b, insn->pc, is_call ? insn_next(insn) : 0);
}

void translate_return_from(struct builder *b, uint64_t pc, unsigned extra) {
    asm_pop_reg(&b->code, RCX);
    if (extra)
        asm_lea(&b->code, 64, RSP, asm_at32(RSP, extra));
    TOOL_HOOK(returned, (struct tool_block *)b, pc, 8 + extra);
    asm_store_field(&b->code, RCX, TASK_JUMP_TARGET);
    write_lookup(b, pc, 0);
}

static void translate_return(struct builder *b, struct insn *insn) {
    begin_indirect(b);
    translate_return_from(b, insn->pc, insn->z.raw.imm[0].size ? insn->z.raw.imm[0].value.u : 0);
}

// Most system calls concern nobody but the kernel, which leaves all registers as they are but rax,
// rcx and r11: they are made right here. rcx is free, as the call overwrites it; no flags are used.
static void translate_syscall(struct builder *b, struct insn *insn) {
    struct assembler *a = &b->code;
    begin_indirect(b);
    asm_movzx_reg_reg(a, RCX, 16, RAX);
    asm_movzx_reg_mem(a, RCX, 8, asm_at32(RCX, (int64_t)cache_syscall_table));
    struct asm_jump permitted = asm_jrcxz(a);
    asm_unspill(a, RCX);
    builder_exit_inline(b, EXIT_SYSCALL, insn_next(insn));
    asm_land(a, permitted);
    asm_store_field(a, RAX, TASK_SYSCALL);
    builder_state(b, STATE_SYSCALL, 1u << RCX);
    asm_syscall(a);
    b->pc = insn_next(insn);
    builder_state(b, STATE_SYSCALL_DONE, 0);
    asm_mov_reg_imm(a, RCX, insn_next(insn));
    builder_jump_exit(b, insn_next(insn));
}

static uint64_t branch_target(const struct insn *insn) {
    return insn_next(insn) + insn->z.raw.imm[0].value.s;
}

static void translate_conditional(struct builder *b, struct insn *insn) {
    struct assembler *a = &b->code;
    struct asm_jump taken;
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ: {
        bool is_narrow = insn->z.address_width == 32;
        asm_align_patch(a, is_narrow + 5);
        struct asm_jump to_exit = asm_counter_branch(a, insn->z.opcode & 3, is_narrow);
        struct asm_jump over = asm_jmp_short(a);
        asm_land(a, to_exit);
        taken = asm_jmp_forward(a);
        asm_land(a, over);
        break;
    }
    default:
        asm_align_patch(a, 2);
        taken = asm_jcc_forward(a, insn->z.opcode & 15);
    }
    builder_exit_by(b, taken, branch_target(insn));
}

static bool is_far(const struct insn *insn) {
    return insn->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

// Moves, pushes and pops of the selectors themselves.
static bool uses_fs_or_gs(const struct insn *insn) {
    uint8_t opcode = insn->z.opcode;
    if (insn->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (opcode == 0x8c || opcode == 0x8e))
        return insn->z.raw.modrm.reg == 4 || insn->z.raw.modrm.reg == 5;
    return insn->z.opcode_map == ZYDIS_OPCODE_MAP_0F &&
           (opcode == 0xa0 || opcode == 0xa1 || opcode == 0xa8 || opcode == 0xa9);
}

bool translate_control(struct builder *b, struct insn *insn) {
    uint64_t next = insn_next(insn);
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
        translate_syscall(b, insn);
        return true;
    case ZYDIS_MNEMONIC_INT3:
        builder_exit_inline(b, EXIT_BREAKPOINT, next);
        return true;
    case ZYDIS_MNEMONIC_INT:
        if (insn->z.raw.imm[0].value.u == 3)
            builder_exit_inline(b, EXIT_BREAKPOINT, next);
        else if (insn->z.raw.imm[0].value.u == 4)
            builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        else
            break;
        return true;
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_JKZD:
    case ZYDIS_MNEMONIC_JKNZD:
        return false; // branches in name only
    case ZYDIS_MNEMONIC_SYSENTER:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_RDFSBASE:
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
        builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        return true;
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_PUSH:
        if (!uses_fs_or_gs(insn))
            break;
        builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        return true;
    default:
        break;
    }
    switch (insn->z.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        translate_conditional(b, insn);
        return true;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (is_far(insn))
            builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        else if (insn->z.raw.imm[0].size)
            builder_jump_exit(b, branch_target(insn));
        else
            translate_indirect(b, insn, false);
        return true;
    case ZYDIS_CATEGORY_CALL:
        if (is_far(insn)) {
            builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        } else if (insn->z.raw.imm[0].size) {
            write_push_return(&b->code, next);
            builder_jump_exit(b, branch_target(insn));
        } else {
            translate_indirect(b, insn, true);
        }
        return true;
    case ZYDIS_CATEGORY_RET:
        if (insn->z.mnemonic == ZYDIS_MNEMONIC_RET && !is_far(insn))
            translate_return(b, insn);
        else
            builder_exit_inline(b, EXIT_EMULATE, insn->pc);
        return true;
    default:
        return false;
    }
}
