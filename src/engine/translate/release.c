// The stack pointer and the shadow of what it releases.
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/translate/checks.h"

enum { INLINE_RELEASE = 96 }; // bytes of stack whose shadow is set without a loop

// ---- the stack pointer -------------------------------------------------------------------------

// How far an instruction moves rsp up; 0: not, or down; -1: anywhere.
int64_t release_of(struct insn *insn) {
    const ZydisDecodedOperand *first = &insn->operands[0], *second = &insn->operands[1];
    bool is_rsp = insn->z.operand_count && first->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                  first->reg.value == ZYDIS_REGISTER_RSP;
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
        return is_rsp ? -1 : insn->z.operand_width / 8;
    case ZYDIS_MNEMONIC_LEAVE:
        return -1;
    case ZYDIS_MNEMONIC_ADD:
        if (!is_rsp)
            return 0;
        if (second->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return -1;
        return second->imm.value.s > 0 ? second->imm.value.s : 0;
    case ZYDIS_MNEMONIC_SUB:
        if (!is_rsp || second->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return 0;
        return second->imm.value.s < 0 ? -second->imm.value.s : 0;
    case ZYDIS_MNEMONIC_LEA:
        if (!is_rsp)
            return 0;
        if (second->mem.base != ZYDIS_REGISTER_RSP || second->mem.index != ZYDIS_REGISTER_NONE)
            return -1;
        return second->mem.disp.value > 0 ? second->mem.disp.value : 0;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
        return 0;
    default:
        break;
    }
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            register_number(insn->operands[i].reg.value) == RSP &&
            insn->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            return -1;
    return 0;
}

// Whether rsp comes from somewhere else; not if a function leaves a frame of its own, whose size is
// known or whose end rbp tells.
static bool is_loaded(const struct insn *insn) {
    const ZydisDecodedOperand *second = &insn->operands[1];
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_ADD:
        return false;
    case ZYDIS_MNEMONIC_LEA:
        return second->mem.base != ZYDIS_REGISTER_RSP && second->mem.base != ZYDIS_REGISTER_RBP;
    case ZYDIS_MNEMONIC_MOV:
        return second->type != ZYDIS_OPERAND_TYPE_REGISTER ||
               second->reg.value != ZYDIS_REGISTER_RBP;
    default:
        return true;
    }
}

__attribute__((target("general-regs-only"))) static void stack_released(uint32_t unused,
                                                                        uint64_t rsp, void *state) {
    tool->stack_moved(self->old_rsp, rsp, false);
}

__attribute__((target("general-regs-only"))) static void stack_loaded(uint32_t unused, uint64_t rsp,
                                                                      void *state) {
    tool->stack_moved(self->old_rsp, rsp, true);
}

uint64_t release_gate(const struct insn *insn) {
    return cache_gate_to(is_loaded(insn) ? stack_loaded : stack_released);
}

// The size bytes below rsp have just been released.
void release_emit(struct builder *b, unsigned size) {
    struct address a = {.base = RSP, .index = -1, .displacement = -(int)size};
    if (size > INLINE_RELEASE) {
        emit_gate_begin(&b->e);
        emit_bytes(&b->e, (uint8_t[]){0x48, 0x8d, 0xbc, 0x24}, 4); // lea rdi, [rsp - size]
        emit32(&b->e, -size);
        emit_store_field(&b->e, RDI, TASK_OLD_RSP);
        emit_gate_call(&b->e, cache_gate_to(stack_released));
        return;
    }
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_set_shadow(&b->e, &a, step, -1u);
    }
}

// ---- the red zone ------------------------------------------------------------------------------
//
// Functions that call no others keep variables below the stack pointer, which no instruction ever
// releases. Where code does so is noted as it is translated, and a return from nearby releases it.

enum { GRANULE = 64, NEARBY = 1024 / GRANULE, SLOT = 8 };

static uint8_t depths[LOW_END / GRANULE]; // in slots; sparse

void release_note_red_zone(const struct insn *insn, const ZydisDecodedOperand *operand) {
    int64_t displacement = operand->mem.disp.value;
    if ((operand->mem.base != ZYDIS_REGISTER_RSP && operand->mem.base != ZYDIS_REGISTER_RBP) ||
        displacement >= 0 || displacement < -RED_ZONE || insn->pc >= LOW_END ||
        !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return;
    // From rbp, which was pushed, one slot more.
    unsigned slots = (-displacement + SLOT - 1) / SLOT + (operand->mem.base == ZYDIS_REGISTER_RBP);
    uint8_t *depth = &depths[insn->pc / GRANULE];
    if (*depth < slots)
        *depth = slots;
}

static unsigned red_zone_at(uint64_t pc) {
    unsigned slots = 0;
    if (pc >= LOW_END)
        return 0;
    for (unsigned i = 0; i < NEARBY && pc / GRANULE >= i; i++)
        if (depths[pc / GRANULE - i] > slots)
            slots = depths[pc / GRANULE - i];
    return slots * SLOT;
}

void checks_return(struct builder *b, uint64_t pc, unsigned size) {
    bool after_leave = b->rest > b->all && b->rest[-1].z.mnemonic == ZYDIS_MNEMONIC_LEAVE;
    struct address a = {.base = RSP, .index = -1};
    unsigned zone = after_leave ? 0 : red_zone_at(pc);
    for (unsigned at = SLOT; at <= zone; at += SLOT) {
        a.displacement = -(int)(size + at);
        emit_set_shadow(&b->e, &a, SLOT, -1u);
    }
    release_emit(b, size);
}
