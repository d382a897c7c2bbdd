// Control flow: every branch becomes an exit of the block or a look-up of its destination.
//
// Indirect branches never leave the cache when their destination is known. With rcx spilled and
// the destination in it, the low area's table gives the offset of the destination's code in the
// cache; offset 0 is the gate for destinations that are not in the table. No flags, no compare.
// A destination outside the table reads unmapped memory or a non-canonical address (layout.h): the
// fault handler sends it to the same gate. Once there is code above 4 GiB, the upper half of the
// destination is tested first.
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/translate/builder.h"

static void emit_push_return(struct builder *b, uint64_t address) {
    emit8(&b->e, 0x68); // push imm32, sign-extended
    emit32(&b->e, address);
    if (address != (uint64_t)(int32_t)address) {
        emit_bytes(&b->e, (uint8_t[]){0xc7, 0x44, 0x24, 0x04}, 4); // mov dword [rsp+4], imm32
        emit32(&b->e, address >> 32);
    }
}

// Among the versions other than 0. A destination that cannot exist comes to the dispatcher, too.
static void emit_version_lookup(struct builder *b, uint64_t pc, uint64_t after_call) {
    unsigned version = version_number(b->units & ~HIDDEN_UNITS, false);
    builder_note_branch(b, pc);
    if (after_call)
        emit_push_return(b, after_call);
    emit_store_field_imm(&b->e, TASK_EXIT_VERSION, version);
    emit_move_imm(&b->e, RCX, cache_version_key(version));
    emit_jump(&b->e, cache_gate_version_lookup);
    b->ended = true;
}

// The destination is in rcx and, already, in self->jump_target. A call pushes its return address
// (after_call, else 0) after the look-up: a destination that cannot exist is refused before.
static void emit_lookup(struct builder *b, uint64_t pc, uint64_t after_call) {
    struct emitter *e = &b->e;
    if (b->units & ~HIDDEN_UNITS) {
        emit_version_lookup(b, pc, after_call);
        return;
    }
    if (cache_high_code) {
        // Not reached by faults: the dispatcher must know the branch to refuse its destination.
        builder_note_branch(b, pc);
        if (after_call)
            emit_push_return(b, after_call);
        emit_load_field32(e, RCX, TASK_JUMP_TARGET + 4);
        emit_bytes(e, (uint8_t[]){0xe3, 5}, 2); // jrcxz over the jump
        emit_jump(e, cache_gate_high_lookup);
        emit_load_field32(e, RCX, TASK_JUMP_TARGET);
    }
    builder_state(b, STATE_LOOKUP, 1u << RCX);
    emit_bytes(e, (uint8_t[]){0x8b, 0x0c, 0x8d}, 3); // mov ecx, [rcx*4 + table]
    emit32(e, JUMP_TABLE);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x89}, 3); // lea rcx, [rcx + cache]
    emit32(e, CACHE_START);
    if (after_call && !cache_high_code)
        emit_push_return(b, after_call);
    emit_bytes(e, (uint8_t[]){0xff, 0xe1}, 2); // jmp rcx
    b->ended = true;
}

static void emit_indirect_begin(struct builder *b) {
    emit_spill(&b->e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
}

static void translate_indirect(struct builder *b, struct insn *insn, bool is_call) {
    insn_operands(insn);
    emit_indirect_begin(b);
    translate_load_operand(b, insn, &insn->operands[0]);
    emit_store_field(&b->e, RCX, TASK_JUMP_TARGET);
    emit_lookup(b, insn->pc, is_call ? insn_next(insn) : 0);
}

void translate_return_from(struct builder *b, uint64_t pc, unsigned extra) {
    emit8(&b->e, 0x59); // pop rcx
    if (extra) {
        emit_bytes(&b->e, (uint8_t[]){0x48, 0x8d, 0xa4, 0x24}, 4); // lea rsp, [rsp + imm]
        emit32(&b->e, extra);
    }
    if (tool->shadows)
        checks_return(b, pc, 8 + extra);
    emit_store_field(&b->e, RCX, TASK_JUMP_TARGET);
    emit_lookup(b, pc, 0);
}

static void translate_return(struct builder *b, struct insn *insn) {
    emit_indirect_begin(b);
    translate_return_from(b, insn->pc, insn->z.raw.imm[0].size ? insn->z.raw.imm[0].value.u : 0);
}

// Most system calls concern nobody but the kernel, which leaves all registers as they are but rax,
// rcx and r11: they are made right here. rcx is free, as the call overwrites it; no flags are used.
static void translate_syscall(struct builder *b, struct insn *insn) {
    struct emitter *e = &b->e;
    enum { WAY_OUT = 9 + 12 + 5 };
    emit_indirect_begin(b);
    emit_bytes(e, (uint8_t[]){0x0f, 0xb7, 0xc8, 0x0f, 0xb6, 0x89}, 6); // movzx ecx, ax; movzx ecx,
    emit32(e, (uint64_t)cache_syscall_table);                          //   byte [rcx + table]
    emit_bytes(e, (uint8_t[]){0xe3, WAY_OUT}, 2);                      // jrcxz over the way out
    emit_unspill(e, RCX);
    builder_exit_inline(b, EXIT_SYSCALL, insn_next(insn));
    emit_store_field(e, RAX, TASK_SYSCALL);
    builder_state(b, STATE_SYSCALL, 1u << RCX);
    emit_bytes(e, (uint8_t[]){0x0f, 0x05}, 2); // syscall
    b->pc = insn_next(insn);
    builder_state(b, STATE_SYSCALL_DONE, 0);
    emit_move_imm(e, RCX, insn_next(insn));
    builder_jump_exit(b, insn_next(insn));
}

static uint64_t branch_target(const struct insn *insn) {
    return insn_next(insn) + insn->z.raw.imm[0].value.s;
}

static void translate_conditional(struct builder *b, struct insn *insn) {
    struct emitter *e = &b->e;
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ: {
        bool short_counter = insn->z.address_width == 32;
        emit_align_patch(e, short_counter + 5);
        if (short_counter)
            emit8(e, 0x67);
        emit8(e, insn->z.opcode);
        emit_bytes(e, (uint8_t[]){2, 0xeb, 5, 0xe9}, 4); // +2; jmp over; jmp rel32
        break;
    }
    default:
        emit_align_patch(e, 2);
        emit8(e, 0x0f);
        emit8(e, 0x80 | (insn->z.opcode & 15));
    }
    builder_exit_rel32(b, branch_target(insn));
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
            emit_push_return(b, next);
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
