// Instructions that only move data: undefined bits are carried along by generated code.
//
// Most of what programs do with undefined data is to copy it: records with padding, structures of
// which some fields were never set, registers that a function saves. A plain move that is followed
// calls a gate (carry_gate.c). Where the gate refuses, C code follows the instruction as it
// follows any other.
//
// The move's address must be defined, which the block's version says. Origins are kept by C code
// only, so nothing is carried with --track-origins=yes.
#include "base/x86.h"
#include "tools/memcheck/target/insert/insert.h"

// Offsets in the thread's state.
enum {
    GENERAL_BITS = offsetof(struct memcheck_thread, registers.general),
    VECTOR_BITS = offsetof(struct memcheck_thread, registers.vector),
    NO_BITS = offsetof(struct memcheck_thread, no_bits),
    MOVED_BITS = offsetof(struct memcheck_thread, moved_bits),
};

enum { NO_UNIT = 0xff }; // a constant, which is defined

// ---- which instructions ------------------------------------------------------------------------

static bool is_general(const ZydisDecodedOperand *operand) {
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operand->reg.value >= ZYDIS_REGISTER_AL && operand->reg.value <= ZYDIS_REGISTER_R15 &&
           (operand->reg.value < ZYDIS_REGISTER_AH || operand->reg.value > ZYDIS_REGISTER_BH);
}

static int vector_number(const ZydisDecodedOperand *operand) {
    if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return -1;
    ZydisRegister reg = operand->reg.value;
    if (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_XMM15)
        return reg - ZYDIS_REGISTER_XMM0;
    if (reg >= ZYDIS_REGISTER_YMM0 && reg <= ZYDIS_REGISTER_YMM15)
        return reg - ZYDIS_REGISTER_YMM0;
    return -1;
}

static bool describe_general(struct carry *carry, const ZydisDecodedOperand *operand) {
    if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        carry->unit = NO_UNIT;
        carry->bits = NO_BITS;
        return true;
    }
    if (!is_general(operand))
        return false;
    carry->unit = SHADOW_UNIT_GENERAL + register_number(operand->reg.value);
    carry->bits = GENERAL_BITS + 8 * carry->unit;
    return true;
}

static bool describe_vector(struct carry *carry, const ZydisDecodedOperand *operand) {
    int number = vector_number(operand);
    if (number < 0)
        return false;
    carry->unit = SHADOW_UNIT_VECTOR + number;
    carry->bits = VECTOR_BITS + 64 * number;
    return true;
}

// Moves between a general register and memory. A load must overwrite the whole register.
static bool is_general_move(struct carry *carry, const struct insn *insn) {
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    carry->memory = to;
    carry->kind = CARRY_STORE;
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (to->type == ZYDIS_OPERAND_TYPE_MEMORY)
            return describe_general(carry, from);
        if (to->size < 32)
            return false;
        break;
    case ZYDIS_MNEMONIC_MOVZX:
        if (to->size < 32)
            return false;
        break;
    default:
        return false;
    }
    carry->memory = from;
    carry->kind = CARRY_LOAD;
    return from->type == ZYDIS_OPERAND_TYPE_MEMORY && describe_general(carry, to);
}

static bool is_stack_move(struct carry *carry, const struct insn *insn) {
    const ZydisDecodedOperand *first = &insn->operands[0];
    if (first->size != 64 || !describe_general(carry, first) || carry->unit == RSP)
        return false;
    carry->size = 8;
    carry->is_frame = true;
    carry->address = asm_at(RSP, 0);
    if (insn->z.mnemonic == ZYDIS_MNEMONIC_POP) {
        carry->kind = CARRY_LOAD;
        return true;
    }
    carry->kind = CARRY_STORE;
    carry->address.displacement = -8;
    return insn->z.mnemonic == ZYDIS_MNEMONIC_PUSH;
}

// Moves between memory and the low part of a vector register, whose rest a load clears.
static bool is_vector_move(struct carry *carry, const struct insn *insn) {
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    if ((insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
         insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_VEX) ||
        !follow_is_vector_move(insn->z.mnemonic))
        return false;
    if (to->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        carry->memory = to;
        carry->kind = CARRY_STORE;
        return describe_vector(carry, from);
    }
    carry->memory = from;
    carry->kind = CARRY_LOAD_VECTOR;
    return from->type == ZYDIS_OPERAND_TYPE_MEMORY && describe_vector(carry, to);
}

static bool is_copy(const struct checked_block *b, struct carry *carry, const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
        break;
    default:
        return false;
    }
    carry->kind = CARRY_COPY;
    carry->size = insn->operands[0].size / 8;
    carry->is_frame = false;
    return insn->z.meta.category == ZYDIS_CATEGORY_STRINGOP && insn->z.address_width == 64 &&
           !(insn->z.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
                                   ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_SEGMENT)) &&
           !(b->units & (UNIT(RSI) | UNIT(RDI)));
}

static bool has_undefined_address(const struct checked_block *b, const struct asm_memory *a) {
    return (a->base >= 0 && b->units & UNIT(a->base)) ||
           (a->index >= 0 && b->units & UNIT(a->index));
}

bool carry_describe(const struct checked_block *b, const struct insn *insn, struct carry *carry) {
    if (track_origins)
        return false;
    if (is_stack_move(carry, insn) || is_copy(b, carry, insn))
        return true;
    if (!is_general_move(carry, insn) && !is_vector_move(carry, insn))
        return false;
    if (!checks_plain_address(b, insn, carry->memory, &carry->address) ||
        carry->address.is_narrow || has_undefined_address(b, &carry->address))
        return false;
    carry->size = carry->memory->size / 8;
    carry->is_frame = carry->address.base == RSP && carry->address.index < 0 &&
                      carry->address.displacement >= -RED_ZONE;
    return carry->size <= 32 && !(carry->size & (carry->size - 1));
}

uint64_t carry_written(const struct carry *carry) {
    return carry->kind == CARRY_LOAD || carry->kind == CARRY_LOAD_VECTOR ? UNIT(carry->unit) : 0;
}

// ---- code --------------------------------------------------------------------------------------

static const uint16_t scratch = 1u << RCX | 1u << RDX;

// rdx = the offset of the bits that a store writes.
static void write_source(struct checked_block *b, const struct carry *carry) {
    struct assembler *e = b->code;
    if (carry->unit == NO_UNIT || !(b->units & UNIT(carry->unit))) {
        asm_mov_reg_imm(e, RDX, NO_BITS);
        return;
    }
    asm_movzx_reg_mem(e, RCX, 8, asm_task(unit_field(carry->unit)));
    asm_mov_reg_imm(e, RDX, NO_BITS);
    struct asm_jump defined = asm_jrcxz(e);
    asm_mov_reg_imm(e, RDX, carry->bits);
    asm_land(e, defined);
}

// Calls the gate; rcx = 0 if it has carried.
static void call_gate(struct checked_block *b, const struct carry *carry) {
    struct assembler *e = b->code;
    asm_begin_gate_call(e);
    asm_lea(e, 64, RDI, carry->address);
    if (carry->kind == CARRY_STORE)
        write_source(b, carry);
    else
        asm_mov_reg_imm(e, RDX, carry->bits);
    asm_gate_call(e, carry_gate(carry->kind, carry->size, carry->is_frame));
}

// A load, and if it was carried, a store.
static void call_both_gates(struct checked_block *b, const struct carry *carry) {
    struct assembler *e = b->code;
    struct carry half = {.kind = CARRY_LOAD, .size = carry->size, .bits = MOVED_BITS};
    half.address = asm_at(RSI, 0);
    call_gate(b, &half);
    struct asm_jump loaded = asm_jrcxz(e), refused = asm_jmp_forward(e);
    asm_land(e, loaded);
    asm_begin_gate_call(e);
    asm_mov_reg_imm(e, RDX, MOVED_BITS);
    asm_gate_call(e, carry_gate(CARRY_STORE, carry->size, false)); // rdi is the address already
    asm_land(e, refused);
}

struct asm_jump carry_try(struct checked_block *b, const struct carry *carry) {
    struct assembler *e = b->code;
    asm_spill(e, RCX);
    asm_spill(e, RDX);
    insert_state(b->block, INSERT_WITHIN, scratch);
    if (carry->kind == CARRY_COPY)
        call_both_gates(b, carry);
    else
        call_gate(b, carry);
    struct asm_jump carried = asm_jrcxz(e);
    asm_unspill(e, RCX);
    asm_unspill(e, RDX);
    insert_state(b->block, INSERT_WITHIN, 0);
    return carried;
}

void carry_end(struct checked_block *b, const struct carry *carry, struct asm_jump carried) {
    struct assembler *e = b->code;
    struct asm_jump over = asm_jmp_short(e);
    asm_land(e, carried);
    insert_state(b->block, INSERT_WITHIN, scratch);
    if (carry_written(carry))
        asm_mov_mem_imm(e, 8, asm_task(unit_field(carry->unit)), 1);
    if (carry->kind == CARRY_LOAD_VECTOR)
        asm_mov_mem_imm(e, 8, asm_task(ANY_HIDDEN), 1);
    asm_unspill(e, RCX);
    asm_unspill(e, RDX);
    asm_land(e, over);
    insert_state(b->block, INSERT_WITHIN, 0);
}
