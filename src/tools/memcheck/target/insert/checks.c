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
#include <string.h>

#include "tools/memcheck/target/insert/insert.h"

enum { CANARY = 0x28 }; // fs:0x28, which nobody writes

// ---- shadow ------------------------------------------------------------------------------------

static struct asm_memory shadow_of_operand(const struct asm_memory *memory) {
    return asm_in_segment(ASM_GS, *memory);
}

static void write_compare_zero(struct assembler *e, const struct asm_memory *memory,
                               unsigned size) {
    asm_cmp_mem_imm(e, size * 8, shadow_of_operand(memory), 0);
}

void checks_set_shadow(struct assembler *e, const struct asm_memory *memory, unsigned size,
                       uint32_t value) {
    asm_mov_mem_imm(e, size * 8, shadow_of_operand(memory), value);
}

// rcx = the shadow
static void write_load(struct assembler *e, const struct asm_memory *memory, unsigned size) {
    if (size >= 4)
        asm_mov_reg_mem(e, size * 8, RCX, shadow_of_operand(memory));
    else
        asm_movzx_reg_mem(e, RCX, size * 8, shadow_of_operand(memory));
}

// The largest piece of an operand that one instruction checks.
unsigned checks_piece(unsigned size) {
    return size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
}

// ---- checks ------------------------------------------------------------------------------------

// Puts registers back, and over to the forced version.
static void write_way_out(struct checked_block *b, uint64_t units, uint16_t spilled) {
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (spilled & 1u << reg)
            asm_unspill(b->code, reg);
    asm_align_patch(b->code, 1);
    insert_failed_by(b->block, asm_jmp_forward(b->code), units);
}

static void check_with_flags(struct checked_block *b, struct asm_memory a, unsigned size,
                             uint64_t units, uint16_t spilled) {
    struct assembler *e = b->code;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        write_compare_zero(e, &a, step);
        if (!spilled) {
            asm_align_patch(e, 2);
            insert_failed_by(b->block, asm_jcc_forward(e, ASM_NOT_EQUAL), units);
            continue;
        }
        struct asm_jump zero = asm_jcc_short(e, ASM_EQUAL);
        write_way_out(b, units, spilled);
        asm_land(e, zero);
    }
}

// rcx is free if the instruction has spilled it already, but the address may be in it.
static void check_without_flags(struct checked_block *b, struct asm_memory a, unsigned size,
                                uint64_t units, uint16_t spilled) {
    struct assembler *e = b->code;
    bool is_scratch = spilled & 1u << RCX;
    if (is_scratch)
        asm_store_field(e, RCX, INSERT_SCRATCH);
    else
        asm_spill(e, RCX);
    insert_state(b->block, INSERT_CHECK, spilled | 1u << RCX);
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        write_load(e, &a, step);
        struct asm_jump zero = asm_jrcxz(e);
        write_way_out(b, units, spilled | 1u << RCX);
        asm_land(e, zero);
        if (is_scratch)
            asm_load_field(e, RCX, INSERT_SCRATCH);
        else if (size > step)
            asm_unspill(e, RCX);
    }
    if (!is_scratch)
        asm_unspill(e, RCX);
}

// Registers in `spilled` are scratch: they are to be put back on the way out.
static void write_check(struct checked_block *b, const struct asm_memory *address, unsigned size,
                        uint64_t units, uint16_t spilled) {
    insert_state(b->block, INSERT_CHECK, spilled);
    if (insert_flags_are_dead(b->block))
        check_with_flags(b, *address, size, units, spilled);
    else
        check_without_flags(b, *address, size, units, spilled);
    insert_state(b->block, INSERT_WITHIN, spilled);
}

// ---- stores ------------------------------------------------------------------------------------

static void store_jump(struct checked_store *store, struct asm_jump jump) {
    store->jumps[store->jump_count++] = jump;
}

static void check_store_with_flags(struct assembler *e, struct checked_store *store) {
    struct asm_memory a = store->memory;
    unsigned size = store->size;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        write_compare_zero(e, &a, step);
        store_jump(store, asm_jcc_forward(e, ASM_NOT_EQUAL));
    }
}

static void check_store_without_flags(struct checked_block *b, struct checked_store *store) {
    struct assembler *e = b->code;
    struct asm_memory a = store->memory;
    unsigned size = store->size;
    asm_spill(e, RCX);
    insert_state(b->block, INSERT_CHECK, 1u << RCX);
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        write_load(e, &a, step);
        struct asm_jump zero = asm_jrcxz(e);
        asm_unspill(e, RCX);
        store_jump(store, asm_jmp_forward(e));
        asm_land(e, zero);
        asm_unspill(e, RCX);
    }
}

static void write_store_check(struct checked_block *b, uint64_t pc,
                              const struct asm_memory *address, unsigned size, uint64_t units) {
    struct checked_store *store = &b->stores[b->store_count++];
    *store = (struct checked_store){.memory = *address,
                                    .size = size,
                                    .keeps_flags = !insert_flags_are_dead(b->block),
                                    .pc = pc,
                                    .units = units};
    insert_state(b->block, INSERT_CHECK, 0);
    if (store->keeps_flags)
        check_store_without_flags(b, store);
    else
        check_store_with_flags(b->code, store);
    store->back = b->code->at;
    insert_state(b->block, INSERT_WITHIN, 0);
}

static void write_stores(struct checked_block *b) {
    struct assembler *e = b->code;
    for (unsigned i = 0; i < b->store_count; i++) {
        const struct checked_store *store = &b->stores[i];
        for (unsigned jump = 0; jump < store->jump_count; jump++)
            asm_land(e, store->jumps[jump]);
        insert_for_pc(b->block, store->pc);
        insert_state(b->block, INSERT_WITHIN, 0);
        asm_spill(e, RCX);
        insert_state(b->block, INSERT_WITHIN, 1u << RCX);
        asm_lea(e, 64, RCX, store->memory);
        asm_store_field_imm(e, STORE_BACK, 0);
        uint8_t *back = e->immediate;
        asm_jmp(e, store_gates[__builtin_ctz(store->size)][store->keeps_flags]);
        asm_align_patch(e, 1);
        insert_failed_by(b->block, asm_jmp_forward(e), store->units);
        uint32_t here = asm_address(e);
        memcpy(back, &here, 4);
        asm_jmp(e, (uint64_t)store->back);
    }
}

// ---- what is written without a look ------------------------------------------------------------

static void write_zero(struct checked_block *b, const struct asm_memory *address, unsigned size) {
    struct asm_memory a = *address;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        checks_set_shadow(b->code, &a, step, 0);
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
                          const struct assembler *e, struct asm_memory *a) {
    *a = (struct asm_memory){.base = register_number(operand->mem.base),
                             .index = register_number(operand->mem.index),
                             .scale = scale_bits(operand->mem.scale),
                             .displacement = operand->mem.disp.value,
                             .is_narrow = insn->z.address_width == 32};
    if (has_segment(operand))
        return false;
    if (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP) {
        int64_t distance = insn_rip_target(insn) - asm_address(e);
        a->is_rip = true;
        a->displacement = insn_rip_target(insn);
        return distance == (int32_t)distance && !a->is_narrow;
    }
    return a->displacement == (int32_t)a->displacement;
}

bool checks_plain_address(const struct checked_block *b, const struct insn *insn,
                          const ZydisDecodedOperand *operand, struct asm_memory *a) {
    return !is_odd(insn, operand) && plain_address(insn, operand, b->code, a);
}

// Writes only what a mask register lets it.
static bool has_mask(const struct insn *insn) {
    ZydisRegister mask = insn->z.avx.mask.reg;
    return mask != ZYDIS_REGISTER_NONE && mask != ZYDIS_REGISTER_K0;
}

static bool is_frame_store(const struct insn *insn, const ZydisDecodedOperand *operand,
                           const struct asm_memory *a) {
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

static void check_operand(struct checked_block *b, struct insn *insn,
                          const ZydisDecodedOperand *operand, const struct asm_memory *a,
                          uint64_t units) {
    unsigned size = operand->size / 8;
    if (reads_kernel_data(insn, operand))
        return;
    if (is_frame_store(insn, operand, a)) {
        write_zero(b, a, size);
        return;
    }
    bool is_store = !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
                    !(operand->actions & ZYDIS_OPERAND_ACTION_CONDWRITE) && !has_mask(insn);
    if (is_store && !(size & (size - 1)) && b->store_count < INSERT_INSTRUCTIONS)
        write_store_check(b, insn->pc, a, size, units);
    else
        write_check(b, a, size, units, 0);
}

static void check_stack_slot(struct checked_block *b, struct insn *insn,
                             const ZydisDecodedOperand *operand, uint64_t units) {
    struct asm_memory a = asm_at(RSP, 0);
    unsigned size = operand->size / 8;
    if (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
        a.displacement = -(int)size;
        write_zero(b, &a, size);
    } else {
        if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
            a.base = RBP;
        write_check(b, &a, size, units, 0);
    }
}

// ---- the hooks ---------------------------------------------------------------------------------

static struct checked_block checked; // the engine's lock of code guards it

_Static_assert(sizeof(struct memcheck_thread) <= INSERT_STATE_MOST, "");
_Static_assert(offsetof(struct memcheck_thread, registers.undefined) == 0, "");

static void write_gates(void) {
    store_gates_write();
    carry_gates_write();
}

void checks_start(void) {
    write_gates();
}

void checks_flushed(void) {
    track_forget_all();
    write_gates();
}

static struct checked_block *begin(struct tool_block *block) {
    struct checked_block *b = &checked;
    b->block = block;
    b->code = insert_assembler(block);
    b->version = insert_version(block);
    b->is_generated = insert_is_generated(block);
    b->force = b->version.forced;
    b->store_count = b->hidden.units = 0;
    checks_set_units(b, b->version.set);
    return b;
}

void checks_head(struct tool_block *block) {
    hidden_head(begin(block));
}

void checks_before(struct tool_block *block, struct insn *insn) {
    struct checked_block *b = &checked;
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
            struct asm_memory a;
            if (!checks_touches_memory(insn, operand))
                continue;
            release_note_red_zone(insn, operand);
            if (is_stack_slot(insn, operand) || insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
                check_stack_slot(b, insn, operand, units);
            else if (plain_address(insn, operand, b->code, &a))
                check_operand(b, insn, operand, &a, units);
        }
        if (units)
            follow_define_overwritten(b, insn);
    }
    if (b->units)
        follow_forget_dead(b, insn);
    if (moves_stack)
        asm_store_field(b->code, RSP, OLD_RSP);
    if (insn->z.meta.category == ZYDIS_CATEGORY_CALL)
        release_at_call(b, insn);
}

void checks_operand(struct tool_block *block, struct insn *insn, const ZydisDecodedOperand *operand,
                    const struct asm_memory *address, uint16_t spilled) {
    struct checked_block *b = &checked;
    if (b->followed || is_odd(insn, operand) || reads_kernel_data(insn, operand))
        return;
    if (operand->mem.segment == ZYDIS_REGISTER_FS && operand->mem.base == ZYDIS_REGISTER_NONE &&
        operand->mem.index == ZYDIS_REGISTER_NONE && operand->mem.disp.value == CANARY)
        return;
    write_check(b, address, operand->size / 8, b->units, spilled);
}

void checks_after(struct tool_block *block, struct insn *insn) {
    struct checked_block *b = &checked;
    release_after(b, insn);
    // What has turned out to be defined need not be followed from here on.
    if (b->written)
        follow_if_defined(b, b->written, insn_next(insn));
    if ((b->version.set || b->version.forced) && !b->units) // nothing is left to follow
        insert_exit(b->block, insn_next(insn));
}

void checks_returned(struct tool_block *block, uint64_t pc, unsigned size) {
    release_returned(&checked, pc, size);
}

void checks_replaced(struct tool_block *block) {
    follow_replaced(begin(block));
}

void checks_end(struct tool_block *block) {
    write_stores(&checked);
    hidden_end(&checked);
}

__attribute__((target("general-regs-only"))) uint64_t checks_thread_set(bool is_single) {
    uint64_t units = undefined_units(0, SHADOW_UNITS);
    return is_single ? units : units & ~HIDDEN_UNITS;
}

__attribute__((target("general-regs-only"))) void checks_register_set(unsigned number) {
    memcheck_thread()->registers.undefined[SHADOW_UNIT_GENERAL + number] = 0;
}
