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
#include "engine/translate/builder.h"

enum {
    RED_ZONE = 128,
    CANARY = 0x28,       // fs:0x28, which nobody writes
    INLINE_RELEASE = 96, // bytes of stack whose shadow is set without a loop
};

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

static void emit_set(struct emitter *e, const struct address *a, unsigned size, uint32_t value) {
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
static unsigned piece(unsigned size) {
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
        step = piece(size);
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
        step = piece(size);
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
        step = piece(size);
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
        step = piece(size);
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
}

// ---- what is written without a look ------------------------------------------------------------

static void emit_zero(struct builder *b, const struct address *address, unsigned size) {
    struct address a = *address;
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = piece(size);
        emit_set(&b->e, &a, step, 0);
    }
}

// ---- what an instruction needs -----------------------------------------------------------------

static bool is_stack_slot(const struct insn *insn, const ZydisDecodedOperand *operand) {
    return operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           operand->mem.base == ZYDIS_REGISTER_RSP;
}

static bool touches_memory(const struct insn *insn, const ZydisDecodedOperand *operand) {
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
        if (touches_memory(insn, &insn->operands[i]) && is_odd(insn, &insn->operands[i]))
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
    return !has_mask(insn) && a->base == RSP && a->index < 0 && a->displacement >= -RED_ZONE && !a->is_narrow &&
           !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
           !(operand->actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
}

static void check_operand(struct builder *b, struct insn *insn, const ZydisDecodedOperand *operand,
                          const struct address *a, uint64_t units) {
    unsigned size = operand->size / 8;
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
    if (b->followed || is_odd(insn, operand))
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
    } else if (insn->z.mnemonic != ZYDIS_MNEMONIC_RET) {
        if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
            a.base = RBP;
        emit_check(b, &a, size, units, 0);
    }
}

// ---- registers ---------------------------------------------------------------------------------

static unsigned unit_field(unsigned unit) {
    return TASK_TOOL_MEMORY + unit;
}

static void emit_define(struct emitter *e, uint64_t units) {
    for (; units; units &= units - 1) {
        emit_bytes(e, (uint8_t[]){0x64, 0xc6}, 2); // mov byte fs:[unit], 0
        emit_task_operand(e, 0, unit_field(__builtin_ctzl(units)));
        emit8(e, 0);
    }
}

// reg = the bytes of 8 units, or one of them; the others are 0, or in the set as well
static void emit_load_units(struct emitter *e, unsigned reg, unsigned group, uint8_t units) {
    if (units & (units - 1)) {
        emit_load_field(e, reg, unit_field(8 * group));
        return;
    }
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0xb6}, 3); // movzx reg, byte fs:[unit]
    emit_task_operand(e, reg, unit_field(8 * group + __builtin_ctz(units)));
}

// SSE moves into a whole register leave its upper parts as they are. They count as overwritten all the
// same: values that are undefined only there have come by AVX, which does not mix with SSE.
static bool is_whole_move(const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_PSHUFD:
        return true;
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD:
        return insn->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
    default:
        return false;
    }
}

static struct tool_units units_of(const struct insn *insn) {
    struct tool_units units = tool->units(&insn->z, insn->operands);
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    if (insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !is_whole_move(insn) ||
        to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->reg.value < ZYDIS_REGISTER_XMM0 ||
        to->reg.value > ZYDIS_REGISTER_XMM31)
        return units;
    uint64_t unit = 1ul << (TOOL_UNIT_VECTOR + (to->reg.value - ZYDIS_REGISTER_XMM0));
    units.kills |= unit;
    if (from->type != ZYDIS_OPERAND_TYPE_REGISTER || from->reg.value != to->reg.value)
        units.reads &= ~unit;
    return units;
}

// If all of these units are defined, over to the version of `target` for which the rest may not be.
// Bytes are 0 or 1, so that sums of them do not overflow.
static void emit_if_defined(struct builder *b, uint64_t units, uint64_t target) {
    struct emitter *e = &b->e;
    unsigned groups = 0;
    for (unsigned group = 0; group < TOOL_UNITS / 8; group++)
        groups += (units >> 8 * group & 0xff) != 0;
    bool first = true, second = groups > 1;
    emit_spill(e, RCX);
    if (second)
        emit_spill(e, RDX);
    builder_state(b, STATE_WITHIN, 1u << RCX | (second ? 1u << RDX : 0));
    for (unsigned group = 0; group < TOOL_UNITS / 8; group++) {
        uint8_t some = units >> 8 * group;
        if (!some)
            continue;
        emit_load_units(e, first ? RCX : RDX, group, some);
        if (!first)
            emit_add_address(e, RCX, RCX, RDX);
        first = false;
    }
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    uint8_t *clear = e->at;
    emit_unspill(e, RCX);
    if (second)
        emit_unspill(e, RDX);
    emit_bytes(e, (uint8_t[]){0xeb, 0}, 2); // jmp
    uint8_t *over = e->at;
    clear[-1] = e->at - clear;
    emit_unspill(e, RCX);
    if (second)
        emit_unspill(e, RDX);
    uint64_t all = b->units;
    b->units &= ~units;
    emit_align_patch(e, 1);
    emit8(e, 0xe9);
    builder_exit_rel32(b, target);
    b->units = all;
    over[-1] = e->at - over;
}

// The argument is in rdi already.
static void emit_gate_call(struct emitter *e, uint64_t gate) {
    emit_load_field(e, RSP, TASK_HOST_RSP);
    emit8(e, 0xe8); // call
    emit32(e, gate - (emit_address(e) + 4));
    emit_unspill(e, RDI);
    emit_unspill(e, RSP);
}

static void emit_gate_begin(struct emitter *e) {
    emit_spill(e, RSP);
    emit_spill(e, RDI);
}

// Units that the block overwrites before it reads them, whatever way it goes.
static uint64_t overwritten_units(const struct builder *b, unsigned count) {
    uint64_t read = 0, overwritten = 0;
    for (unsigned i = 0; i < count; i++) {
        struct insn *insn = (struct insn *)&b->all[i];
        if (insn->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
            insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
            break;
        insn_operands(insn);
        struct tool_units units = units_of(insn);
        read |= units.reads & ~overwritten;
        overwritten |= units.kills & ~read;
    }
    return overwritten;
}

static bool touches_hidden(const ZydisDecodedOperand *operand) {
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ((operand->reg.value >= ZYDIS_REGISTER_XMM0 &&
             operand->reg.value <= ZYDIS_REGISTER_ZMM31) ||
            (operand->reg.value >= ZYDIS_REGISTER_K0 && operand->reg.value <= ZYDIS_REGISTER_K7) ||
            (operand->reg.value >= ZYDIS_REGISTER_ST0 &&
             operand->reg.value <= ZYDIS_REGISTER_MM7));
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

// A block that touches hidden units.
struct hidden_site {
    uint64_t pc;
    unsigned version;
    struct block *last; // where it went on last
    uint64_t exit; // code that leaves the block for the version that is not there yet
};

__attribute__((target("general-regs-only"))) static void run_hidden(void *argument) {
    struct hidden_site *site = argument;
    uint64_t units = version_hidden_units();
    self->entry = 0;
    self->any_hidden = units != 0;
    if (!units)
        return;
    units |= version_get(site->version).units;
    struct block *block = __atomic_load_n(&site->last, __ATOMIC_ACQUIRE);
    if (!block || block->dead || version_get(block->version).units != units) {
        unsigned version = version_find(units, false);
        block = version == NO_VERSION ? NULL : block_find(site->pc, version);
        __atomic_store_n(&site->last, block, __ATOMIC_RELEASE);
    }
    self->entry = block ? CACHE_START + block->code + block->direct_entry : site->exit;
}

static void emit_hidden_check(struct builder *b) {
    struct emitter *e = &b->e;
    struct hidden_site *site = block_memory(sizeof *site);
    emit_spill(e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0xb6}, 3); // movzx ecx, byte fs:[any_hidden]
    emit_task_operand(e, RCX, TASK_ANY_HIDDEN);
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    uint8_t *none = e->at;
    emit_unspill(e, RCX);
    emit_gate_begin(e);
    builder_state(b, STATE_WITHIN, 1u << RDI | 1u << RSP);
    emit_move_imm(e, RDI, (uint64_t)site);
    emit_gate_call(e, cache_gate_hidden);
    emit_spill(e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    emit_load_field(e, RCX, TASK_ENTRY);
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    uint8_t *false_alarm = e->at;
    emit_unspill(e, RCX);
    emit_bytes(e, (uint8_t[]){0x64, 0xff}, 2); // jmp fs:[entry]
    emit_task_operand(e, 4, TASK_ENTRY);
    *site = (struct hidden_site){.pc = b->start, .version = b->version, .exit = emit_address(e)};
    builder_exit_inline(b, EXIT_HIDDEN, b->start);
    b->ended = false;
    none[-1] = e->at - none;
    false_alarm[-1] = e->at - false_alarm;
    emit_unspill(e, RCX);
}

void checks_head(struct builder *b, unsigned count) {
    if (b->units & HIDDEN_UNITS)
        return; // made for exactly these
    builder_state(b, STATE_CLEAN, 0);
    uint64_t dead = b->units ? overwritten_units(b, count) & b->units : 0;
    if (dead) { // the version without them does
        emit_define(&b->e, dead);
        b->units &= ~dead;
        builder_jump_exit(b, b->start);
        return;
    }
    if (b->units)
        emit_if_defined(b, b->units, b->start);
    for (unsigned i = 0; i < count; i++) {
        if (uses_hidden_units((struct insn *)&b->all[i])) {
            emit_hidden_check(b);
            return;
        }
    }
}

#define UNIT(number) (1ul << (number))

// Nobody hands flags over by a call or a return. Other registers that the convention leaves to the
// called function are not forgotten: compilers know what their own functions leave alone.
static const uint64_t dead_at_calls = UNIT(TOOL_UNIT_FLAGS);

// ---- following ---------------------------------------------------------------------------------

struct followed {
    uint64_t pc;
    void *prepared;
    uint64_t hidden; // units that it writes
};

__attribute__((target("general-regs-only"))) static void run_follower(void *argument) {
    const struct followed *followed = argument;
    self->pc = followed->pc;
    tool->follow(followed->prepared);
    for (uint64_t units = followed->hidden; units; units &= units - 1)
        if (self->tool_memory[__builtin_ctzl(units)])
            self->any_hidden = true;
}

__attribute__((target("general-regs-only"))) static void run_replacement(void *argument) {
    const struct hooked_function *hooked = argument;
    self->pc = hooked->shown;
    hooked->function(hooked->argument);
    self->tool_memory[TOOL_UNIT_GENERAL + RAX] = 0;
    self->raised = self->fault.number != 0;
}

void checks_init(void) {
    if (tool->shadows)
        cache_set_followers(run_follower, run_replacement, run_hidden);
    if (tool->shadows)
        cache_write_store_gates();
}

void checks_replace(struct builder *b, const struct hooked_function *hooked) {
    struct emitter *e = &b->e;
    builder_state(b, STATE_CLEAN, 0);
    emit_gate_begin(e);
    builder_state(b, STATE_WITHIN, 1u << RDI | 1u << RSP);
    emit_move_imm(e, RDI, (uint64_t)hooked);
    emit_gate_call(e, cache_gate_replace);
    emit_spill(e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    emit_load_field32(e, RCX, TASK_RAISED);
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    uint8_t *over = e->at;
    emit_unspill(e, RCX);
    builder_exit_inline(b, EXIT_RAISED, b->start);
    over[-1] = e->at - over;
    uint64_t dead = dead_at_calls | UNIT(RAX);
    emit_define(e, dead & b->units);
    b->units &= ~dead;
    translate_return_from(b, b->start, 0);
}

static void follow(struct builder *b, struct insn *insn) {
    struct tool_units units = units_of(insn);
    void *prepared = tool->prepare(insn->pc, insn->bytes, &insn->z, insn->operands);
    b->followed = true;
    if (!prepared)
        return;
    builder_state(b, STATE_WITHIN, 0); // must not be done twice
    struct followed *followed = block_memory(sizeof *followed);
    *followed = (struct followed){insn->pc, prepared, units.writes & HIDDEN_UNITS};
    emit_gate_begin(&b->e);
    emit_move_imm(&b->e, RDI, (uint64_t)followed);
    emit_gate_call(&b->e, cache_gate_follow);
    // A stack pointer that is undefined leads nowhere anyway.
    b->written = units.writes & ~UNIT(RSP);
    b->units |= b->written;
}

static void define_overwritten(struct builder *b, struct insn *insn) {
    struct tool_units units = units_of(insn);
    emit_define(&b->e, units.kills & b->units);
    b->units &= ~units.kills;
}

static bool reads_undefined(const struct builder *b, struct insn *insn) {
    return b->units && units_of(insn).reads & b->units;
}

static void forget_dead(struct builder *b, const struct insn *insn) {
    if (insn->z.meta.category != ZYDIS_CATEGORY_RET && insn->z.meta.category != ZYDIS_CATEGORY_CALL)
        return;
    emit_define(&b->e, dead_at_calls & b->units);
    b->units &= ~dead_at_calls;
}

// ---- the stack pointer -------------------------------------------------------------------------

// How far an instruction moves rsp up; 0: not, or down; -1: anywhere.
static int64_t release_of(struct insn *insn) {
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

__attribute__((target("general-regs-only"))) static void stack_moved(uint32_t unused, uint64_t rsp,
                                                                     void *state) {
    tool->stack_moved(self->old_rsp, rsp);
}

// The size bytes below rsp have just been released.
static void emit_release(struct builder *b, unsigned size) {
    struct address a = {.base = RSP, .index = -1, .displacement = -(int)size};
    if (size > INLINE_RELEASE) {
        emit_gate_begin(&b->e);
        emit_bytes(&b->e, (uint8_t[]){0x48, 0x8d, 0xbc, 0x24}, 4); // lea rdi, [rsp - size]
        emit32(&b->e, -size);
        emit_store_field(&b->e, RDI, TASK_OLD_RSP);
        emit_gate_call(&b->e, cache_gate_to(stack_moved));
        return;
    }
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = piece(size);
        emit_set(&b->e, &a, step, -1u);
    }
}

// ---- the red zone ------------------------------------------------------------------------------
//
// Functions that call no others keep variables below the stack pointer, which no instruction ever
// releases. Where code does so is noted as it is translated, and a return from nearby releases it.

enum { GRANULE = 64, NEARBY = 1024 / GRANULE, SLOT = 8 };

static uint8_t depths[LOW_END / GRANULE]; // in slots; sparse

static void note_red_zone(const struct insn *insn, const ZydisDecodedOperand *operand) {
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
        emit_set(&b->e, &a, SLOT, -1u);
    }
    emit_release(b, size);
}

// ---- around an instruction ---------------------------------------------------------------------

void checks_before(struct builder *b, struct insn *insn) {
    insn_operands(insn);
    b->followed = false;
    b->written = 0;
    bool moves_stack = release_of(insn) < 0;
    if (b->force || reads_undefined(b, insn) || needs_following(insn)) {
        b->force = false;
        follow(b, insn);
    }
    if (!b->followed) {
        uint64_t units = b->units;
        for (unsigned i = 0; i < insn->z.operand_count; i++) {
            const ZydisDecodedOperand *operand = &insn->operands[i];
            struct address a;
            if (!touches_memory(insn, operand))
                continue;
            note_red_zone(insn, operand);
            if (is_stack_slot(insn, operand) || insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE)
                check_stack_slot(b, insn, operand, units);
            else if (plain_address(insn, operand, &b->e, &a))
                check_operand(b, insn, operand, &a, units);
        }
        if (units)
            define_overwritten(b, insn);
    }
    if (b->units)
        forget_dead(b, insn);
    if (moves_stack)
        emit_store_field(&b->e, RSP, TASK_OLD_RSP);
}

void checks_after(struct builder *b, struct insn *insn) {
    int64_t release = release_of(insn);
    if (release > 0 && release < INT32_MAX) {
        emit_release(b, release);
    } else if (release < 0) {
        emit_gate_begin(&b->e);
        emit_gate_call(&b->e, cache_gate_to(stack_moved));
    }
    // What has turned out to be defined need not be followed from here on.
    if (b->written)
        emit_if_defined(b, b->written, insn_next(insn));
}
