// What shadow memory asks for around an instruction (docs/memcheck.md).
//
// A memory operand is checked before the instruction: one compare of its shadow with zero. When it
// is not zero, the forced version of the block that begins here takes over. Where flags are wanted
// later, rcx takes the shadow and jrcxz decides.
//
// Stack: what lies relative to rsp is written without a look, and its shadow with it. The shadow of
// released stack is set after the instruction that releases it. Always the shadow first when memory
// is written, and after it when it is read or released: processors that forward stores to loads by
// the form of their addresses (base and displacement, without the segment) would take one for the
// other.
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/translate/checks.h"

enum { CANARY = 0x28 }; // fs:0x28, which nobody writes

// ---- encoding ----------------------------------------------------------------------------------

// Opcode and operand; `tail` bytes of immediate follow.
static void emit_op(struct emitter *e, const struct address *a, unsigned width,
                    const uint8_t *opcode, unsigned opcode_size, unsigned reg, unsigned tail) {
    if (width == 16)
        emit8(e, 0x66);
    if (a->is_narrow)
        emit8(e, 0x67);
    unsigned rex = (width == 64) << 3 | (a->index >= 8) << 1 | (a->base >= 8);
    if (rex)
        emit8(e, 0x40 | rex);
    emit_bytes(e, opcode, opcode_size);
    if (a->is_rip) {
        emit8(e, reg << 3 | 5);
        emit32(e, a->displacement - (emit_address(e) + 4 + tail));
        return;
    }
    bool small = a->displacement == (int8_t)a->displacement;
    unsigned mod = a->base < 0 ? 0 : a->displacement == 0 && (a->base & 7) != 5 ? 0 : small ? 1 : 2;
    if (a->base >= 0 && a->index < 0 && (a->base & 7) != 4) {
        emit8(e, mod << 6 | reg << 3 | (a->base & 7));
    } else {
        emit8(e, mod << 6 | reg << 3 | 4);
        emit8(e, a->scale << 6 | (a->index < 0 ? 4 : a->index & 7) << 3 |
                     (a->base < 0 ? 5 : a->base & 7));
    }
    if (mod == 1)
        emit8(e, a->displacement);
    else if (mod == 2 || a->base < 0)
        emit32(e, a->displacement);
}

// The same for the operand's shadow.
static void emit_shadow_op(struct emitter *e, const struct address *a, unsigned width,
                           const uint8_t *opcode, unsigned opcode_size, unsigned reg,
                           unsigned tail) {
    emit8(e, 0x65); // gs:
    emit_op(e, a, width, opcode, opcode_size, reg, tail);
}

static void emit_compare_zero(struct emitter *e, const struct address *a, unsigned size) {
    emit_shadow_op(e, a, size * 8, (uint8_t[]){size == 1 ? 0x80 : 0x83}, 1, 7, 1);
    emit8(e, 0);
}

void emit_set_shadow(struct emitter *e, const struct address *a, unsigned size, uint32_t value) {
    unsigned tail = size < 4 ? size : 4;
    emit_shadow_op(e, a, size * 8, (uint8_t[]){size == 1 ? 0xc6 : 0xc7}, 1, 0, tail);
    emit_bytes(e, &value, tail);
}

// rcx = the shadow
static void emit_load(struct emitter *e, const struct address *a, unsigned size) {
    if (size >= 4)
        emit_shadow_op(e, a, size * 8, (uint8_t[]){0x8b}, 1, RCX, 0);
    else
        emit_shadow_op(e, a, 32, (uint8_t[]){0x0f, size == 1 ? 0xb6 : 0xb7}, 2, RCX, 0);
}

// The largest piece of an operand that one instruction checks.
unsigned check_piece(unsigned size) {
    return size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
}

// ---- checks ------------------------------------------------------------------------------------

// Puts registers back, and over to the forced version.
static void emit_way_out(struct builder *b, uint64_t units, uint16_t spilled) {
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (spilled & 1u << reg)
            emit_unspill(&b->e, reg);
    emit_align_patch(&b->e, 1);
    emit8(&b->e, 0xe9); // jmp
    builder_force_rel32(b, units);
}

static void check_with_flags(struct builder *b, struct address a, unsigned size, uint64_t units,
                             uint16_t spilled) {
    struct emitter *e = &b->e;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_compare_zero(e, &a, step);
        if (!spilled) {
            emit_align_patch(e, 2);
            emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
            builder_force_rel32(b, units);
            continue;
        }
        emit_bytes(e, (uint8_t[]){0x74, 0}, 2); // je
        uint8_t *over = e->at;
        emit_way_out(b, units, spilled);
        over[-1] = e->at - over;
    }
}

// rcx is free if the instruction has spilled it already, but the address may be in it.
static void check_without_flags(struct builder *b, struct address a, unsigned size, uint64_t units,
                                uint16_t spilled) {
    struct emitter *e = &b->e;
    bool is_scratch = spilled & 1u << RCX;
    if (is_scratch)
        emit_store_field(e, RCX, TASK_JUMP_TARGET);
    else
        emit_spill(e, RCX);
    builder_state(b, STATE_CHECK, spilled | 1u << RCX);
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_load(e, &a, step);
        emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
        uint8_t *over = e->at;
        emit_way_out(b, units, spilled | 1u << RCX);
        over[-1] = e->at - over;
        if (is_scratch)
            emit_load_field(e, RCX, TASK_JUMP_TARGET);
        else if (size > step)
            emit_unspill(e, RCX);
    }
    if (!is_scratch)
        emit_unspill(e, RCX);
}

// Registers in `spilled` are scratch: they are to be put back on the way out.
static void emit_check(struct builder *b, const struct address *address, unsigned size,
                       uint64_t units, uint16_t spilled) {
    builder_state(b, STATE_CHECK, spilled);
    if (builder_flags_are_dead(b))
        check_with_flags(b, *address, size, units, spilled);
    else
        check_without_flags(b, *address, size, units, spilled);
    builder_state(b, STATE_WITHIN, spilled);
}

// ---- stores ------------------------------------------------------------------------------------

static void store_jump(struct emitter *e, struct checked_store *store) {
    emit32(e, 0);
    store->jumps[store->jump_count++] = e->at;
}

static void check_store_with_flags(struct emitter *e, struct checked_store *store) {
    struct address a = store->address;
    unsigned size = store->size;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_compare_zero(e, &a, step);
        emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
        store_jump(e, store);
    }
}

static void check_store_without_flags(struct builder *b, struct checked_store *store) {
    struct emitter *e = &b->e;
    struct address a = store->address;
    unsigned size = store->size;
    emit_spill(e, RCX);
    builder_state(b, STATE_CHECK, 1u << RCX);
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_load(e, &a, step);
        emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
        uint8_t *over = e->at;
        emit_unspill(e, RCX);
        emit8(e, 0xe9); // jmp
        store_jump(e, store);
        over[-1] = e->at - over;
        emit_unspill(e, RCX);
    }
}

static void emit_store_check(struct builder *b, const struct address *address, unsigned size,
                             uint64_t units) {
    struct checked_store *store = &b->stores[b->store_count++];
    *store = (struct checked_store){.address = *address,
                                    .size = size,
                                    .keeps_flags = !builder_flags_are_dead(b),
                                    .pc = b->pc,
                                    .units = units};
    builder_state(b, STATE_CHECK, 0);
    if (store->keeps_flags)
        check_store_without_flags(b, store);
    else
        check_store_with_flags(&b->e, store);
    store->back = b->e.at;
    builder_state(b, STATE_WITHIN, 0);
}

void checks_end(struct builder *b) {
    struct emitter *e = &b->e;
    for (unsigned i = 0; i < b->store_count; i++) {
        const struct checked_store *store = &b->stores[i];
        for (unsigned jump = 0; jump < store->jump_count; jump++) {
            uint32_t distance = e->at - store->jumps[jump];
            memcpy(store->jumps[jump] - 4, &distance, 4);
        }
        b->pc = store->pc;
        builder_state(b, STATE_WITHIN, 0);
        emit_spill(e, RCX);
        builder_state(b, STATE_WITHIN, 1u << RCX);
        emit_op(e, &store->address, 64, (uint8_t[]){0x8d}, 1, RCX, 0); // lea
        emit_store_field_imm(e, TASK_STORE_BACK, 0);
        uint8_t *back = e->at - 4;
        emit_jump(e, cache_gate_store[__builtin_ctz(store->size)][store->keeps_flags]);
        emit_align_patch(e, 1);
        emit8(e, 0xe9); // jmp
        builder_force_rel32(b, store->units);
        uint32_t here = emit_address(e);
        memcpy(back, &here, 4);
        emit_jump(e, (uint64_t)store->back);
    }
    follow_end(b);
}

// ---- what is written without a look ------------------------------------------------------------

static void emit_zero(struct builder *b, const struct address *address, unsigned size) {
    struct address a = *address;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = check_piece(size);
        emit_set_shadow(&b->e, &a, step, 0);
    }
}

// ---- what an instruction needs -----------------------------------------------------------------

static bool is_stack_slot(const struct insn *insn, const ZydisDecodedOperand *operand) {
    return operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           operand->mem.base == ZYDIS_REGISTER_RSP;
}

bool checks_touches_memory(const struct insn *insn, const ZydisDecodedOperand *operand) {
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
           operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
           insn->z.meta.category != ZYDIS_CATEGORY_WIDENOP &&
           insn->z.meta.category != ZYDIS_CATEGORY_NOP &&
           insn->z.meta.category != ZYDIS_CATEGORY_PREFETCH;
}

static bool is_stack_instruction(const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_LEAVE:
        return true;
    default:
        return false;
    }
}

static bool is_bit_test(const struct insn *insn) {
    ZydisMnemonic m = insn->z.mnemonic;
    return m == ZYDIS_MNEMONIC_BT || m == ZYDIS_MNEMONIC_BTS || m == ZYDIS_MNEMONIC_BTR ||
           m == ZYDIS_MNEMONIC_BTC;
}

// An operand of another shape than base + index + displacement: its instruction is always followed.
static bool is_odd(const struct insn *insn, const ZydisDecodedOperand *operand) {
    unsigned size = operand->size / 8;
    if (is_stack_slot(insn, operand))
        return !is_stack_instruction(insn);
    if (operand->visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
        return insn->z.mnemonic != ZYDIS_MNEMONIC_LEAVE;
    if (operand->mem.type != ZYDIS_MEMOP_TYPE_MEM || !size || size > 64 ||
        operand->mem.disp.value != (int32_t)operand->mem.disp.value)
        return true;
    return is_bit_test(insn) && insn->operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static bool needs_following(const struct insn *insn) {
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (checks_touches_memory(insn, &insn->operands[i]) && is_odd(insn, &insn->operands[i]))
            return true;
    return false;
}

static unsigned scale_bits(unsigned scale) {
    return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
}

static bool has_segment(const ZydisDecodedOperand *operand) {
    return operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS;
}

// False: the address is computed by the copier, which calls checks_operand.
static bool plain_address(const struct insn *insn, const ZydisDecodedOperand *operand,
                          const struct emitter *e, struct address *a) {
    *a = (struct address){.base = register_number(operand->mem.base),
                          .index = register_number(operand->mem.index),
                          .scale = scale_bits(operand->mem.scale),
                          .displacement = operand->mem.disp.value,
                          .is_narrow = insn->z.address_width == 32};
    if (has_segment(operand))
        return false;
    if (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP) {
        int64_t distance = insn_rip_target(insn) - emit_address(e);
        a->is_rip = true;
        a->displacement = insn_rip_target(insn);
        return distance == (int32_t)distance && !a->is_narrow;
    }
    return a->displacement == (int32_t)a->displacement;
}

// Writes only what a mask register lets it.
static bool has_mask(const struct insn *insn) {
    ZydisRegister mask = insn->z.avx.mask.reg;
    return mask != ZYDIS_REGISTER_NONE && mask != ZYDIS_REGISTER_K0;
}

static bool is_frame_store(const struct insn *insn, const ZydisDecodedOperand *operand,
                           const struct address *a) {
    return !has_mask(insn) && a->base == RSP && a->index < 0 && a->displacement >= -RED_ZONE &&
           !a->is_narrow && !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
           !(operand->actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
}

// The kernel's data that the vdso reads has no shadow: an address there plus the distance is not
// canonical. It is defined.
static bool reads_kernel_data(const struct insn *insn, const ZydisDecodedOperand *operand) {
    return insn_is_vdso(insn) && !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
           operand->mem.base != ZYDIS_REGISTER_RSP && operand->mem.base != ZYDIS_REGISTER_RBP;
}

static void check_operand(struct builder *b, struct insn *insn, const ZydisDecodedOperand *operand,
                          const struct address *a, uint64_t units) {
    unsigned size = operand->size / 8;
    if (reads_kernel_data(insn, operand))
        return;
    if (is_frame_store(insn, operand, a)) {
        emit_zero(b, a, size);
        return;
    }
    bool is_store = !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
                    !(operand->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) && !has_mask(insn);
    if (is_store && !(size & (size - 1)) && b->store_count < BLOCK_INSTRUCTIONS)
        emit_store_check(b, a, size, units);
    else
        emit_check(b, a, size, units, 0);
}

void checks_operand(struct builder *b, struct insn *insn, const ZydisDecodedOperand *operand,
                    const struct address *address, uint16_t spilled) {
    if (b->followed || is_odd(insn, operand) || reads_kernel_data(insn, operand))
        return;
    if (operand->mem.segment == ZYDIS_REGISTER_FS && operand->mem.base == ZYDIS_REGISTER_NONE &&
        operand->mem.index == ZYDIS_REGISTER_NONE && operand->mem.disp.value == CANARY)
        return;
    emit_check(b, address, operand->size / 8, b->units, spilled);
}

static void check_stack_slot(struct builder *b, struct insn *insn,
                             const ZydisDecodedOperand *operand, uint64_t units) {
    struct address a = {.base = RSP, .index = -1};
    unsigned size = operand->size / 8;
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
        a.displacement = -(int)size;
        emit_zero(b, &a, size);
    } else {
        if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
            a.base = RBP;
        emit_check(b, &a, size, units, 0);
    }
}

// ---- around an instruction ---------------------------------------------------------------------

void checks_before(struct builder *b, struct insn *insn) {
    insn_operands(insn);
    b->followed = false;
    b->written = 0;
    bool moves_stack = release_of(insn) < 0;
    if (b->force || follow_is_needed(b, insn) || needs_following(insn)) {
        b->force = false;
        follow_insn(b, insn);
    }
    if (!b->followed) {
        uint64_t units = b->units;
        for (unsigned i = 0; i < insn->z.operand_count; i++) {
            const ZydisDecodedOperand *operand = &insn->operands[i];
            struct address a;
            if (!checks_touches_memory(insn, operand))
                continue;
            release_note_red_zone(insn, operand);
            if (is_stack_slot(insn, operand) || insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
                check_stack_slot(b, insn, operand, units);
            else if (plain_address(insn, operand, &b->e, &a))
                check_operand(b, insn, operand, &a, units);
        }
        if (units)
            follow_define_overwritten(b, insn);
    }
    if (b->units)
        follow_forget_dead(b, insn);
    if (moves_stack)
        emit_store_field(&b->e, RSP, TASK_OLD_RSP);
    if (insn->z.meta.category == ZYDIS_CATEGORY_CALL)
        release_at_call(b, insn);
}

void checks_after(struct builder *b, struct insn *insn) {
    release_after(b, insn);
    // What has turned out to be defined need not be followed from here on.
    if (b->written)
        follow_if_defined(b, b->written, insn_next(insn));
}
