// Copying an instruction into the cache.
//
// Most instructions are copied byte for byte. An operand must change when it is
//   - relative to rip: the distance is adjusted, or, out of reach, a scratch register holds the
//     address;
//   - relative to fs or gs: these belong to the engine, so a scratch register holds the target's
//     base, which is added to the rest of the address.
// A scratch register is any that the instruction does not use; its value waits in the task's spill
// slot. A load's own destination serves as scratch without being spilled.
#include <string.h>

#include "engine/hooks/hooks.h"
#include "engine/translate/builder.h"

static bool reaches(uint64_t from, uint64_t to) {
    int64_t distance = (int64_t)(to - from);
    return distance == (int32_t)distance;
}

// Any of the eight old registers, so that no REX prefix has to be added.
static int pick_scratch(uint32_t used) {
    static const uint8_t candidates[] = {RCX, RDX, RSI, RDI, RAX, RBX, RBP};
    for (unsigned i = 0; i < sizeof candidates; i++)
        if (!(used & 1u << candidates[i]))
            return candidates[i];
    return -1;
}

// Any register at all, for what is only added to another.
static int pick_second(uint32_t used) {
    int low = pick_scratch(used);
    return low >= 0 ? low : 31 - __builtin_clz(~used & 0xffff);
}

// For `mov reg, [memory]` without reg in the address: reg itself may hold the address.
static int own_scratch(struct insn *insn, const ZydisDecodedOperand *memory) {
    const ZydisDecodedOperand *first = &insn->operands[0];
    if (insn->z.mnemonic != ZYDIS_MNEMONIC_MOV || first->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return -1;
    int reg = register_number(first->reg.value);
    if (reg < 0 || reg >= 8 || reg == RSP || first->size < 32)
        return -1;
    if (reg == register_number(memory->mem.base) || reg == register_number(memory->mem.index))
        return -1;
    return reg;
}

// ---- encoding ----------------------------------------------------------------------------------

// VEX, XOP and EVEX hold the extensions of registers inverted in their second byte.
enum { INVERTED_X = 0x40, INVERTED_B = 0x20 };

// Everything before modrm: prefixes without segment and address size, REX/VEX/EVEX with the new
// register extensions, opcode.
static void encode_head(struct assembler *a, const struct insn *insn,
                        const struct asm_memory *address, bool vector_index) {
    const ZydisDecodedInstruction *z = &insn->z;
    unsigned i = 0;
    while (i < z->raw.prefix_count && z->raw.prefixes[i].value != 0) {
        uint8_t byte = insn->bytes[i];
        if (asm_is_rex(byte))
            break;
        if (!asm_is_address_prefix(byte))
            asm_byte(a, byte);
        i++;
    }
    bool b = address->base >= 8, x = address->index >= 8;
    uint8_t head[4];
    switch (z->encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
        if (z->raw.vex.size == 2)
            break;
        // fall through
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
        memcpy(head, insn->bytes + i, 2);
        head[1] = (head[1] & ~INVERTED_B) | (b ? 0 : INVERTED_B);
        if (!vector_index)
            head[1] = (head[1] & ~INVERTED_X) | (x ? 0 : INVERTED_X);
        asm_bytes(a, head, 2);
        i += 2;
        break;
    default:
        if (asm_is_rex(insn->bytes[i])) {
            uint8_t rex = insn->bytes[i] & ~(ASM_REX_X | ASM_REX_B);
            asm_byte(a, rex | (x ? ASM_REX_X : 0) | (b ? ASM_REX_B : 0));
            i++;
        }
    }
    asm_bytes(a, insn->bytes + i, z->raw.modrm.offset - i);
}

static unsigned immediates_offset(const ZydisDecodedInstruction *z) {
    if (z->raw.disp.size)
        return z->raw.disp.offset + z->raw.disp.size / 8;
    return z->raw.sib.offset ? z->raw.sib.offset + 1 : z->raw.modrm.offset + 1;
}

static void encode_with_address(struct assembler *a, const struct insn *insn,
                                const struct asm_memory *address, bool vector_index) {
    encode_head(a, insn, address, vector_index);
    asm_operand(a, insn->z.raw.modrm.reg, *address);
    unsigned rest = immediates_offset(&insn->z);
    asm_bytes(a, insn->bytes + rest, insn->z.length - rest);
}

// ---- operands ----------------------------------------------------------------------------------

static bool is_rip_relative(const ZydisDecodedOperand *memory) {
    return memory->mem.base == ZYDIS_REGISTER_RIP || memory->mem.base == ZYDIS_REGISTER_EIP;
}

static int segment_field(const ZydisDecodedOperand *memory) {
    if (memory->mem.segment == ZYDIS_REGISTER_FS)
        return TASK_FS_BASE;
    if (memory->mem.segment == ZYDIS_REGISTER_GS)
        return TASK_GS_BASE;
    return 0;
}

static bool is_vector_register(ZydisRegister reg) {
    return reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_ZMM31;
}

static unsigned scale_bits(unsigned scale) {
    return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0;
}

// lea reg, [32-bit address]: the address as the 67 prefix truncates it.
static void write_lea32(struct assembler *a, unsigned reg, const ZydisDecodedOperand *memory) {
    struct asm_memory address = {.base = register_number(memory->mem.base),
                                 .index = register_number(memory->mem.index),
                                 .scale = scale_bits(memory->mem.scale),
                                 .displacement = memory->mem.disp.value,
                                 .is_narrow = true};
    asm_lea(a, 32, reg, address);
}

// scratch += the segment's base
static void write_add_base(struct assembler *a, int scratch, int second, int field) {
    asm_load_field(a, second, field);
    asm_lea_sum(a, scratch, scratch, second);
}

// Writes code that leaves the operand's address reachable as *address, using scratch registers that
// have been spilled; `second` only where needs_second says so.
static void prepare_address(struct assembler *a, const struct insn *insn,
                            const ZydisDecodedOperand *memory, int scratch, int second,
                            struct asm_memory *address) {
    int field = segment_field(memory);
    int base = register_number(memory->mem.base), index = register_number(memory->mem.index);
    *address = asm_at(scratch, 0);
    address->form = ASM_UNSCALED;
    if (is_rip_relative(memory)) {
        asm_mov_reg_imm(a, scratch, insn_rip_target(insn));
        if (field)
            write_add_base(a, scratch, second, field);
        return;
    }
    if (insn->z.address_width == 32 && !is_vector_register(memory->mem.index)) {
        write_lea32(a, scratch, memory);
        write_add_base(a, scratch, second, field);
        return;
    }
    int64_t displacement = memory->mem.disp.value;
    if (displacement != (int32_t)displacement) { // absolute 64-bit address of `mov rax, moffs`
        asm_mov_reg_imm(a, scratch, displacement);
        write_add_base(a, scratch, second, field);
        return;
    }
    asm_load_field(a, scratch, field);
    address->displacement = displacement;
    if (is_vector_register(memory->mem.index)) {
        if (base >= 0)
            asm_lea_sum(a, scratch, base, scratch);
        address->index = insn->z.raw.sib.index;
        address->scale = scale_bits(memory->mem.scale);
    } else if (index >= 0) {
        if (base >= 0)
            asm_lea_sum(a, scratch, base, scratch);
        address->index = index;
        address->scale = scale_bits(memory->mem.scale);
    } else if (base == RSP) {
        address->base = RSP;
        address->index = scratch;
    } else if (base >= 0) {
        address->index = base;
    }
}

static bool needs_second(const struct insn *insn, const ZydisDecodedOperand *memory) {
    if (is_rip_relative(memory))
        return segment_field(memory) != 0;
    int64_t displacement = memory->mem.disp.value;
    return insn->z.address_width == 32 || displacement != (int32_t)displacement;
}

// `mov rax, moffs` and its kin have no modrm: encode them as the ordinary mov.
static void encode_moffs(struct assembler *a, const struct insn *insn, struct asm_memory address) {
    enum { WIDE = 1, STORE = 2 }; // bits of the opcode
    unsigned width = insn->z.opcode & WIDE ? insn->z.operand_width : 8;
    if (insn->z.opcode & STORE)
        asm_mov_mem_reg(a, width, address, RAX);
    else
        asm_mov_reg_mem(a, width, RAX, address);
}

static bool is_moffs(const struct insn *insn) {
    return insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           insn->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->z.opcode >= 0xa0 &&
           insn->z.opcode <= 0xa3;
}

static void copy_with_scratch(struct builder *b, struct insn *insn,
                              const ZydisDecodedOperand *memory) {
    struct asm_memory address;
    uint32_t used = insn_registers(insn) | 1u << RSP;
    int scratch = own_scratch(insn, memory), second = -1;
    uint16_t spilled = 0;
    if (scratch < 0 || needs_second(insn, memory)) {
        scratch = pick_scratch(used);
        asm_spill(&b->code, scratch);
        spilled |= 1u << scratch;
        builder_state(b, STATE_WITHIN, spilled);
        if (needs_second(insn, memory)) {
            second = pick_second(used | 1u << scratch);
            asm_spill(&b->code, second);
            spilled |= 1u << second;
            builder_state(b, STATE_WITHIN, spilled);
        }
    } else {
        // The destination holds the address: if the load faults, its old value is wanted back.
        asm_spill(&b->code, scratch);
        builder_state(b, STATE_WITHIN, 1u << scratch);
    }
    prepare_address(&b->code, insn, memory, scratch, second, &address);
    struct asm_memory shown = address;
    shown.form = ASM_SHORTEST;
    TOOL_HOOK(operand, (struct tool_block *)b, insn, memory, &shown,
              spilled ? spilled : 1u << scratch);
    if (is_moffs(insn))
        encode_moffs(&b->code, insn, address);
    else
        encode_with_address(&b->code, insn, &address, is_vector_register(memory->mem.index));
    if (spilled) {
        asm_unspill(&b->code, scratch);
        if (second >= 0)
            asm_unspill(&b->code, second);
    }
}

// String instructions, xlat and maskmov address memory through a fixed register: bias that
// register by the segment's base for the duration.
static void copy_with_bias(struct builder *b, struct insn *insn, int field) {
    int pointer = insn->z.mnemonic == ZYDIS_MNEMONIC_XLAT ? RBX
                  : insn->z.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ ||
                          insn->z.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU ||
                          insn->z.mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU
                      ? RDI
                      : RSI;
    int scratch = pick_scratch(insn_registers(insn) | 1u << RSP);
    asm_spill(&b->code, scratch);
    builder_state(b, STATE_WITHIN, 1u << scratch);
    asm_load_field(&b->code, scratch, field);
    asm_lea_sum(&b->code, pointer, pointer, scratch);
    builder_state(b, STATE_WITHIN, 1u << scratch);
    b->states[b->state_count - 1].bias =
        (pointer + 1) | (field == TASK_GS_BASE ? STATE_BIAS_GS : 0);
    for (unsigned i = 0; i < insn->z.length; i++)
        if (i >= insn->z.raw.prefix_count ||
            (insn->bytes[i] != ASM_PREFIX_FS && insn->bytes[i] != ASM_PREFIX_GS))
            asm_byte(&b->code, insn->bytes[i]);
    // Taking the base away again without flags: pointer + ~base + 1.
    asm_not_reg(&b->code, 64, scratch);
    asm_lea(&b->code, 64, pointer, asm_indexed(pointer, scratch, 0, 1));
    builder_state(b, STATE_WITHIN, 1u << scratch);
    asm_unspill(&b->code, scratch);
}

static bool has_own_segment(const struct insn *insn) {
    return insn->z.attributes & (ZYDIS_ATTRIB_HAS_SEGMENT_FS | ZYDIS_ATTRIB_HAS_SEGMENT_GS);
}

static const ZydisDecodedOperand *implicit_segment_operand(struct insn *insn) {
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            segment_field(&insn->operands[i]))
            return &insn->operands[i];
    return NULL;
}

void translate_plain(struct builder *b, struct insn *insn) {
    const ZydisDecodedInstruction *z = &insn->z;
    // Moves to and from control registers have a modrm byte whose mod field means nothing.
    bool modrm_memory = (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod != 3;
    bool rip = modrm_memory && z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5 && z->raw.disp.size;
    if (!rip && !has_own_segment(insn)) {
        asm_bytes(&b->code, insn->bytes, z->length);
        return;
    }
    if (has_own_segment(insn)) {
        const ZydisDecodedOperand *memory = implicit_segment_operand(insn);
        if (memory && memory->mem.type != ZYDIS_MEMOP_TYPE_AGEN) {
            if (modrm_memory || is_moffs(insn))
                copy_with_scratch(b, insn, memory);
            else
                copy_with_bias(b, insn, segment_field(memory));
            return;
        }
        if (!rip) {
            asm_bytes(&b->code, insn->bytes, z->length);
            return;
        }
    }
    const ZydisDecodedOperand *memory = insn_memory(insn);
    uint64_t next = asm_address(&b->code) + z->length;
    uint64_t target = insn_rip_target(insn);
    if (reaches(next, target) && !(z->address_width == 32 && target >> 31)) {
        uint32_t distance = target - next;
        uint8_t *at = b->code.at;
        asm_bytes(&b->code, insn->bytes, z->length);
        memcpy(at + z->raw.disp.offset, &distance, 4);
        return;
    }
    copy_with_scratch(b, insn, memory);
}

void translate_load_operand(struct builder *b, struct insn *insn,
                            const ZydisDecodedOperand *operand) {
    struct assembler *a = &b->code;
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        int reg = register_number(operand->reg.value);
        if (reg != RCX)
            asm_mov_reg_reg(a, 64, RCX, reg);
        return;
    }
    enum { RIP_LOAD_SIZE = 7 };
    // mov rcx, [the same operand], through a scratch register where it needs one.
    struct asm_memory address = {.base = register_number(operand->mem.base),
                                 .index = register_number(operand->mem.index),
                                 .scale = scale_bits(operand->mem.scale),
                                 .displacement = operand->mem.disp.value,
                                 .form = ASM_UNSCALED};
    uint64_t target = insn_rip_target(insn);
    if (is_rip_relative(operand) && !segment_field(operand) &&
        reaches(asm_address(a) + RIP_LOAD_SIZE, target)) {
        asm_mov_reg_mem(a, 64, RCX, asm_rip(target));
        return;
    }
    uint16_t spilled = 1u << RCX;
    if (segment_field(operand) || is_rip_relative(operand)) {
        uint32_t used = insn_registers(insn) | 1u << RSP | 1u << RCX;
        int scratch = pick_scratch(used), second = pick_second(used | 1u << scratch);
        asm_spill(a, scratch);
        asm_spill(a, second);
        spilled |= 1u << scratch | 1u << second;
        builder_state(b, STATE_WITHIN, spilled);
        prepare_address(a, insn, operand, scratch, second, &address);
    } else if (insn->z.address_width == 32) {
        write_lea32(a, RCX, operand);
        address = asm_at(RCX, 0);
    }
    asm_mov_reg_mem(a, 64, RCX, address);
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (reg != RCX && spilled & 1u << reg)
            asm_unspill(a, reg);
    builder_state(b, STATE_WITHIN, 1u << RCX);
}
