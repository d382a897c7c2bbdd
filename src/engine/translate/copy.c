// Copying an instruction into the cache.
//
// Most instructions are copied byte for byte. An operand must change when it is
//   - relative to rip: the distance is adjusted, or, out of reach, a scratch register holds the
//     address;
//   - relative to fs or gs: these belong to the engine, so a scratch register holds the target's
//     base, which is added to the rest of the address.
// A scratch register is any that the instruction does not use; its value waits in the task's spill
// slot. A load's own destination serves as scratch without being spilled.
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

static bool is_dropped_prefix(uint8_t byte) {
    return byte == 0x64 || byte == 0x65 || byte == 0x67 || byte == 0x2e || byte == 0x36 ||
           byte == 0x3e || byte == 0x26;
}

// Everything before modrm: prefixes without segment and address size, REX/VEX/EVEX with the new
// register extensions, opcode.
static void encode_head(struct emitter *e, const struct insn *insn, const struct address *address,
                        bool vector_index) {
    const ZydisDecodedInstruction *z = &insn->z;
    unsigned i = 0;
    while (i < z->raw.prefix_count && z->raw.prefixes[i].value != 0) {
        uint8_t byte = insn->bytes[i];
        if ((byte & 0xf0) == 0x40)
            break;
        if (!is_dropped_prefix(byte))
            emit8(e, byte);
        i++;
    }
    uint8_t b = address->base >= 8, x = address->index >= 8;
    uint8_t head[4];
    switch (z->encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
        if (z->raw.vex.size == 2)
            break;
        // fall through
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
        memcpy(head, insn->bytes + i, 2);
        head[1] = (head[1] & ~0x20) | (b ? 0 : 0x20);
        if (!vector_index)
            head[1] = (head[1] & ~0x40) | (x ? 0 : 0x40);
        emit_bytes(e, head, 2);
        i += 2;
        break;
    default:
        if ((insn->bytes[i] & 0xf0) == 0x40) {
            uint8_t rex = (insn->bytes[i] & ~3) | b;
            emit8(e, rex | x << 1);
            i++;
        }
    }
    emit_bytes(e, insn->bytes + i, z->raw.modrm.offset - i);
}

static void encode_address(struct emitter *e, unsigned reg, const struct address *address) {
    bool short_form = address->displacement == 0 && (address->base & 7) != 5;
    unsigned index = address->index < 0 ? 4 : address->index & 7;
    emit8(e, (short_form ? 0 : 0x80) | reg << 3 | 4);
    emit8(e, address->scale << 6 | index << 3 | (address->base & 7));
    if (!short_form)
        emit32(e, address->displacement);
}

static unsigned immediates_offset(const ZydisDecodedInstruction *z) {
    if (z->raw.disp.size)
        return z->raw.disp.offset + z->raw.disp.size / 8;
    return z->raw.sib.offset ? z->raw.sib.offset + 1 : z->raw.modrm.offset + 1;
}

static void encode_with_address(struct emitter *e, const struct insn *insn,
                                const struct address *address, bool vector_index) {
    encode_head(e, insn, address, vector_index);
    encode_address(e, insn->z.raw.modrm.reg, address);
    unsigned rest = immediates_offset(&insn->z);
    emit_bytes(e, insn->bytes + rest, insn->z.length - rest);
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
static void emit_lea32(struct emitter *e, unsigned reg, const ZydisDecodedOperand *memory) {
    int base = register_number(memory->mem.base), index = register_number(memory->mem.index);
    emit8(e, 0x67);
    emit8(e, 0x40 | (reg >= 8) << 2 | (index >= 8) << 1 | (base >= 8));
    emit8(e, 0x8d);
    emit8(e, (base < 0 ? 0 : 0x80) | (reg & 7) << 3 | 4);
    emit8(e, scale_bits(memory->mem.scale) << 6 | (index < 0 ? 4 : index & 7) << 3 |
                 (base < 0 ? 5 : base & 7));
    emit32(e, memory->mem.disp.value);
}

// scratch += the segment's base
static void emit_add_base(struct emitter *e, int scratch, int second, int field) {
    emit_load_field(e, second, field);
    emit_add_address(e, scratch, scratch, second);
}

// Writes code that leaves the operand's address reachable as *address, using scratch registers that
// have been spilled; `second` only where needs_second says so.
static void prepare_address(struct emitter *e, const struct insn *insn,
                            const ZydisDecodedOperand *memory, int scratch, int second,
                            struct address *address) {
    int field = segment_field(memory);
    int base = register_number(memory->mem.base), index = register_number(memory->mem.index);
    *address = (struct address){.base = scratch, .index = -1};
    if (is_rip_relative(memory)) {
        emit_move_imm(e, scratch, insn_rip_target(insn));
        if (field)
            emit_add_base(e, scratch, second, field);
        return;
    }
    if (insn->z.address_width == 32 && !is_vector_register(memory->mem.index)) {
        emit_lea32(e, scratch, memory);
        emit_add_base(e, scratch, second, field);
        return;
    }
    int64_t displacement = memory->mem.disp.value;
    if (displacement != (int32_t)displacement) { // absolute 64-bit address of `mov rax, moffs`
        emit_move_imm(e, scratch, displacement);
        emit_add_base(e, scratch, second, field);
        return;
    }
    emit_load_field(e, scratch, field);
    address->displacement = displacement;
    if (is_vector_register(memory->mem.index)) {
        if (base >= 0)
            emit_add_address(e, scratch, base, scratch);
        address->index = insn->z.raw.sib.index;
        address->scale = scale_bits(memory->mem.scale);
    } else if (index >= 0) {
        if (base >= 0)
            emit_add_address(e, scratch, base, scratch);
        address->index = index;
        address->scale = scale_bits(memory->mem.scale);
    } else if (base == RSP) {
        *address = (struct address){.base = RSP, .index = scratch, .displacement = displacement};
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
static void encode_moffs(struct emitter *e, const struct insn *insn,
                         const struct address *address) {
    uint8_t opcode = insn->z.opcode; // a0..a3
    if (insn->z.operand_width == 16)
        emit8(e, 0x66);
    emit8(e, 0x40 | (insn->z.operand_width == 64) << 3 | (address->index >= 8) << 1 |
                 (address->base >= 8));
    emit8(e, (opcode & 2 ? 0x88 : 0x8a) | (opcode & 1));
    encode_address(e, RAX, address);
}

static bool is_moffs(const struct insn *insn) {
    return insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
           insn->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && insn->z.opcode >= 0xa0 &&
           insn->z.opcode <= 0xa3;
}

static void copy_with_scratch(struct builder *b, struct insn *insn,
                              const ZydisDecodedOperand *memory) {
    struct address address;
    uint32_t used = insn_registers(insn) | 1u << RSP;
    int scratch = own_scratch(insn, memory), second = -1;
    uint16_t spilled = 0;
    if (scratch < 0 || needs_second(insn, memory)) {
        scratch = pick_scratch(used);
        emit_spill(&b->e, scratch);
        spilled |= 1u << scratch;
        builder_state(b, STATE_WITHIN, spilled);
        if (needs_second(insn, memory)) {
            second = pick_second(used | 1u << scratch);
            emit_spill(&b->e, second);
            spilled |= 1u << second;
            builder_state(b, STATE_WITHIN, spilled);
        }
    } else {
        // The destination holds the address: if the load faults, its old value is wanted back.
        emit_spill(&b->e, scratch);
        builder_state(b, STATE_WITHIN, 1u << scratch);
    }
    prepare_address(&b->e, insn, memory, scratch, second, &address);
    if (tool->shadows)
        checks_operand(b, insn, memory, &address, spilled ? spilled : 1u << scratch);
    if (is_moffs(insn))
        encode_moffs(&b->e, insn, &address);
    else
        encode_with_address(&b->e, insn, &address, is_vector_register(memory->mem.index));
    if (spilled) {
        emit_unspill(&b->e, scratch);
        if (second >= 0)
            emit_unspill(&b->e, second);
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
    emit_spill(&b->e, scratch);
    builder_state(b, STATE_WITHIN, 1u << scratch);
    emit_load_field(&b->e, scratch, field);
    emit_add_address(&b->e, pointer, pointer, scratch);
    builder_state(b, STATE_WITHIN, 1u << scratch);
    b->states[b->state_count - 1].bias =
        (pointer + 1) | (field == TASK_GS_BASE ? STATE_BIAS_GS : 0);
    for (unsigned i = 0; i < insn->z.length; i++)
        if (i >= insn->z.raw.prefix_count || (insn->bytes[i] != 0x64 && insn->bytes[i] != 0x65))
            emit8(&b->e, insn->bytes[i]);
    // Taking the base away again without flags: pointer + ~base + 1.
    emit_bytes(&b->e, (uint8_t[]){0x48, 0xf7, 0xd0 | scratch}, 3); // not scratch
    emit8(&b->e, 0x48); // lea pointer, [pointer+scratch+1]
    emit8(&b->e, 0x8d);
    emit8(&b->e, 0x44 | pointer << 3);
    emit8(&b->e, scratch << 3 | pointer);
    emit8(&b->e, 1);
    builder_state(b, STATE_WITHIN, 1u << scratch);
    emit_unspill(&b->e, scratch);
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
        emit_bytes(&b->e, insn->bytes, z->length);
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
            emit_bytes(&b->e, insn->bytes, z->length);
            return;
        }
    }
    const ZydisDecodedOperand *memory = insn_memory(insn);
    uint64_t next = emit_address(&b->e) + z->length;
    uint64_t target = insn_rip_target(insn);
    if (reaches(next, target) && !(z->address_width == 32 && target >> 31)) {
        uint32_t distance = target - next;
        uint8_t *at = b->e.at;
        emit_bytes(&b->e, insn->bytes, z->length);
        memcpy(at + z->raw.disp.offset, &distance, 4);
        return;
    }
    copy_with_scratch(b, insn, memory);
}

void translate_load_operand(struct builder *b, struct insn *insn,
                            const ZydisDecodedOperand *operand) {
    struct emitter *e = &b->e;
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        int reg = register_number(operand->reg.value);
        if (reg != RCX)
            emit_move(e, RCX, reg);
        return;
    }
    // mov rcx, [the same operand], through a scratch register where it needs one.
    struct address address = {.base = register_number(operand->mem.base),
                              .index = register_number(operand->mem.index),
                              .scale = scale_bits(operand->mem.scale),
                              .displacement = operand->mem.disp.value};
    uint64_t target = insn_rip_target(insn);
    if (is_rip_relative(operand) && !segment_field(operand) &&
        reaches(emit_address(e) + 7, target)) {
        emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0d}, 3);
        emit32(e, target - (emit_address(e) + 4));
        return;
    }
    uint16_t spilled = 1u << RCX;
    if (segment_field(operand) || is_rip_relative(operand)) {
        uint32_t used = insn_registers(insn) | 1u << RSP | 1u << RCX;
        int scratch = pick_scratch(used), second = pick_second(used | 1u << scratch);
        emit_spill(e, scratch);
        emit_spill(e, second);
        spilled |= 1u << scratch | 1u << second;
        builder_state(b, STATE_WITHIN, spilled);
        prepare_address(e, insn, operand, scratch, second, &address);
    } else if (insn->z.address_width == 32) {
        emit_lea32(e, RCX, operand);
        address = (struct address){.base = RCX, .index = -1};
    }
    if (address.base < 0) { // absolute or index only
        emit8(e, 0x48 | (address.index >= 8) << 1);
        emit8(e, 0x8b);
        emit8(e, RCX << 3 | 4);
        emit8(e, address.scale << 6 | (address.index < 0 ? 4 : address.index & 7) << 3 | 5);
        emit32(e, address.displacement);
    } else {
        emit8(e, 0x48 | (address.index >= 8) << 1 | (address.base >= 8));
        emit8(e, 0x8b);
        encode_address(e, RCX, &address);
    }
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (reg != RCX && spilled & 1u << reg)
            emit_unspill(e, reg);
    builder_state(b, STATE_WITHIN, 1u << RCX);
}
