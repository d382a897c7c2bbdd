#include "engine/assembler/assembler.h"
#include "engine/assembler/encode.h"

enum {
    PREFIX_OPERAND_SIZE = 0x66,
    REX = 0x40,
    ESCAPE = 0x0f,
    NO_REGISTER = 4, // in a SIB byte: no index
    NO_BASE = 5,     // in a SIB byte without displacement field: none but 32 bits
};

// ---- data --------------------------------------------------------------------------------------

void asm_bytes(struct assembler *a, const void *bytes, unsigned count) {
    uint8_t *at = a->at;
    for (unsigned i = 0; i < count; i++)
        at[i] = ((const uint8_t *)bytes)[i];
    a->at = at + count;
}

void asm_word32(struct assembler *a, uint32_t value) {
    __builtin_memcpy(a->at, &value, 4);
    a->at += 4;
}

void asm_word64(struct assembler *a, uint64_t value) {
    __builtin_memcpy(a->at, &value, 8);
    a->at += 8;
}

static void write_immediate(struct assembler *a, int32_t value, unsigned bytes) {
    uint8_t *at = a->immediate = a->at;
    a->at = at + bytes;
    if (bytes == 4)
        __builtin_memcpy(at, &value, 4);
    else if (bytes == 2)
        __builtin_memcpy(at, &value, 2);
    else
        *at = value;
}

void asm_align(struct assembler *a, unsigned alignment, uint8_t filler) {
    while (asm_address(a) % alignment)
        asm_byte(a, filler);
}

void asm_nops(struct assembler *a, unsigned bytes) {
    enum { LONGEST = 8 };
    static const uint8_t nops[LONGEST][LONGEST] = {
        {0x90},
        {0x66, 0x90},
        {0x0f, 0x1f, 0x00},
        {0x0f, 0x1f, 0x40, 0x00},
        {0x0f, 0x1f, 0x44, 0x00, 0x00},
        {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
        {0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
        {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
    };
    while (bytes) {
        unsigned size = bytes < LONGEST ? bytes : LONGEST;
        asm_bytes(a, nops[size - 1], size);
        bytes -= size;
    }
}

void asm_align_patch(struct assembler *a, unsigned ahead) {
    enum { LINE = 64, FIELD = 4 };
    unsigned within = (asm_address(a) + ahead) % LINE;
    if (within > LINE - FIELD)
        asm_nops(a, LINE - within);
}

// ---- encoding ----------------------------------------------------------------------------------

// The parts of an instruction hand a local pointer on. A byte may alias the assembler's own
// pointer, so the compiler would load and store that one for each byte.

static uint8_t *write_prefixes(uint8_t *at, unsigned width, const struct asm_memory *m) {
    if (m->segment)
        *at++ = m->segment == ASM_FS ? ASM_PREFIX_FS : ASM_PREFIX_GS;
    if (width == 16)
        *at++ = PREFIX_OPERAND_SIZE;
    if (m->is_narrow)
        *at++ = ASM_PREFIX_ADDRESS_SIZE;
    return at;
}

void encode_prefixes(struct assembler *a, unsigned width, const struct asm_memory *m) {
    a->at = write_prefixes(a->at, width, m);
}

static unsigned modrm(unsigned mod, unsigned reg, unsigned rm) {
    return mod << 6 | (reg & 7) << 3 | (rm & 7);
}

// How many bytes of displacement an operand with a base has.
static unsigned displacement_size(const struct asm_memory *m) {
    bool can_be_absent = m->displacement == 0 && (m->base & 7) != RBP;
    switch (m->form) {
    case ASM_BYTE:
        return 1;
    case ASM_LONG:
        return 4;
    case ASM_UNSCALED:
        return can_be_absent ? 0 : 4;
    default:
        return can_be_absent ? 0 : m->displacement == (int8_t)m->displacement ? 1 : 4;
    }
}

// Returns where the displacement goes, of which there are *size bytes.
static uint8_t *write_address(uint8_t *at, unsigned reg, const struct asm_memory *m,
                              unsigned *size) {
    *size = m->base < 0 ? 4 : displacement_size(m);
    unsigned mod = m->base < 0 || *size == 0 ? 0 : *size == 1 ? 1 : 2;
    bool has_sib = m->base < 0 || m->index >= 0 || (m->base & 7) == RSP || m->form == ASM_UNSCALED;
    if (has_sib) {
        *at++ = modrm(mod, reg, RSP);
        *at++ = modrm(m->scale, m->index < 0 ? NO_REGISTER : (unsigned)m->index,
                      m->base < 0 ? NO_BASE : (unsigned)m->base);
    } else {
        *at++ = modrm(mod, reg, m->base);
    }
    return at;
}

static void write_operand(struct assembler *a, uint8_t *at, unsigned reg,
                          const struct asm_memory *m, unsigned tail) {
    uint32_t displacement = m->displacement;
    unsigned size = 4;
    if (m->is_rip) {
        *at++ = modrm(0, reg, NO_BASE);
        displacement -= (uint64_t)at + 4 + tail;
    } else {
        at = write_address(at, reg, m, &size);
    }
    a->displacement = at;
    a->at = at + size;
    if (size == 1)
        *at = displacement;
    else if (size == 4)
        __builtin_memcpy(at, &displacement, 4);
}

void encode_operand(struct assembler *a, unsigned reg, const struct asm_memory *m, unsigned tail) {
    write_operand(a, a->at, reg, m, tail);
}

void asm_operand(struct assembler *a, unsigned reg, struct asm_memory m) {
    write_operand(a, a->at, reg, &m, 0);
}

// Without a REX prefix, numbers 4 to 7 name ah, ch, dh and bh where bytes are meant.
static bool is_high_byte(unsigned width, unsigned reg) {
    return width == 8 && reg >= RSP && reg <= RDI;
}

static uint8_t *write_opcode(uint8_t *at, unsigned opcode, unsigned rex, bool needs_rex) {
    if (opcode >> 16)
        *at++ = opcode >> 16;
    if (rex || needs_rex)
        *at++ = REX | rex;
    if (opcode >> 8 & 0xff)
        *at++ = ESCAPE;
    *at++ = opcode;
    return at;
}

static unsigned rex_reg(unsigned width, unsigned reg) {
    return (width == 64 ? ASM_REX_W : 0) | (reg & 8 ? ASM_REX_R : 0);
}

void encode_mem(struct assembler *a, unsigned width, unsigned opcode, unsigned reg,
                struct asm_memory m, unsigned tail) {
    uint8_t *at = write_prefixes(a->at, width, &m);
    unsigned rex =
        rex_reg(width, reg) | (m.index >= 8 ? ASM_REX_X : 0) | (m.base >= 8 ? ASM_REX_B : 0);
    at = write_opcode(at, opcode, rex, is_high_byte(width, reg));
    write_operand(a, at, reg, &m, tail);
}

void encode_reg(struct assembler *a, unsigned width, unsigned opcode, unsigned reg, unsigned rm) {
    uint8_t *at = a->at;
    if (width == 16)
        *at++ = PREFIX_OPERAND_SIZE;
    unsigned rex = rex_reg(width, reg) | (rm & 8 ? ASM_REX_B : 0);
    at = write_opcode(at, opcode, rex, is_high_byte(width, reg) || is_high_byte(width, rm));
    *at++ = modrm(3, reg, rm);
    a->at = at;
}

// Opcodes come in pairs: the odd one is for 16, 32 and 64 bits, the even one before it for 8.
static unsigned sized(unsigned opcode, unsigned width) {
    return width == 8 ? opcode & ~1u : opcode;
}

static unsigned immediate_size(unsigned width) {
    return width == 8 ? 1 : width == 16 ? 2 : 4;
}

// ---- moves -------------------------------------------------------------------------------------

void asm_mov_reg_reg(struct assembler *a, unsigned width, unsigned to, unsigned from) {
    encode_reg(a, width, sized(0x89, width), from, to);
}

void asm_mov_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    encode_mem(a, width, sized(0x8b, width), to, m, 0);
}

void asm_mov_mem_reg(struct assembler *a, unsigned width, struct asm_memory m, unsigned from) {
    encode_mem(a, width, sized(0x89, width), from, m, 0);
}

// The register is a part of the opcode.
static void write_short_form(struct assembler *a, bool is_wide, uint8_t opcode, unsigned reg) {
    unsigned rex = (is_wide ? ASM_REX_W : 0) | (reg & 8 ? ASM_REX_B : 0);
    if (rex)
        asm_byte(a, REX | rex);
    asm_byte(a, opcode | (reg & 7));
}

void asm_mov_reg_imm(struct assembler *a, unsigned to, uint64_t value) {
    if (value > UINT32_MAX) {
        asm_mov_reg_imm64(a, to, value);
        return;
    }
    write_short_form(a, false, 0xb8, to);
    a->immediate = a->at;
    asm_word32(a, value);
}

void asm_mov_reg_imm64(struct assembler *a, unsigned to, uint64_t value) {
    write_short_form(a, true, 0xb8, to);
    a->immediate = a->at;
    asm_word64(a, value);
}

void asm_mov_mem_imm(struct assembler *a, unsigned width, struct asm_memory m, uint32_t value) {
    unsigned bytes = immediate_size(width);
    encode_mem(a, width, sized(0xc7, width), EXTENSION(0), m, bytes);
    write_immediate(a, value, bytes);
}

// The width is that of the source; a byte register may need a REX prefix.
void asm_movzx_reg_reg(struct assembler *a, unsigned to, unsigned width, unsigned from) {
    unsigned rex = rex_reg(32, to) | (from & 8 ? ASM_REX_B : 0);
    a->at = write_opcode(a->at, width == 8 ? 0x0fb6 : 0x0fb7, rex, is_high_byte(width, from));
    asm_byte(a, modrm(3, to, from));
}

void asm_movzx_reg_mem(struct assembler *a, unsigned to, unsigned width, struct asm_memory m) {
    encode_mem(a, 32, width == 8 ? 0x0fb6 : 0x0fb7, to, m, 0);
}

void asm_lea(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    encode_mem(a, width, 0x8d, to, m, 0);
}

void asm_lea_sum(struct assembler *a, unsigned to, unsigned base, unsigned index) {
    asm_lea(a, 64, to, (struct asm_memory){.base = base, .index = index, .form = ASM_BYTE});
}

void asm_push_reg(struct assembler *a, unsigned reg) {
    write_short_form(a, false, 0x50, reg);
}

void asm_pop_reg(struct assembler *a, unsigned reg) {
    write_short_form(a, false, 0x58, reg);
}

void asm_push_mem(struct assembler *a, struct asm_memory m) {
    encode_mem(a, 32, 0xff, EXTENSION(6), m, 0);
}

void asm_pop_mem(struct assembler *a, struct asm_memory m) {
    encode_mem(a, 32, 0x8f, EXTENSION(0), m, 0);
}

void asm_push_imm(struct assembler *a, int32_t value) {
    asm_byte(a, 0x68);
    write_immediate(a, value, 4);
}

void asm_pushf(struct assembler *a) {
    asm_byte(a, 0x9c);
}

void asm_popf(struct assembler *a) {
    asm_byte(a, 0x9d);
}

// ---- arithmetic --------------------------------------------------------------------------------

// Eight operations are encoded alike: by a number in the opcode, or in the modrm byte.
enum operation { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

static void write_reg_reg(struct assembler *a, enum operation operation, unsigned width,
                          unsigned to, unsigned from) {
    encode_reg(a, width, sized(operation << 3 | 1, width), from, to);
}

static bool is_small(int32_t value) {
    return value == (int8_t)value;
}

static void write_reg_imm(struct assembler *a, enum operation operation, unsigned width,
                          unsigned reg, int32_t value, bool can_be_small) {
    if (width == 8 && reg == RAX) { // al has a form of its own, which is shorter
        asm_byte(a, operation << 3 | 4);
        write_immediate(a, value, 1);
        return;
    }
    bool is_byte = width == 8 || (can_be_small && is_small(value));
    unsigned opcode = width == 8 ? 0x80 : is_byte ? 0x83 : 0x81;
    encode_reg(a, width, opcode, EXTENSION(operation), reg);
    write_immediate(a, value, is_byte ? 1 : immediate_size(width));
}

static void write_mem_imm(struct assembler *a, enum operation operation, unsigned width,
                          struct asm_memory m, int32_t value, bool can_be_small) {
    bool is_byte = width == 8 || (can_be_small && is_small(value));
    unsigned opcode = width == 8 ? 0x80 : is_byte ? 0x83 : 0x81;
    unsigned bytes = is_byte ? 1 : immediate_size(width);
    encode_mem(a, width, opcode, EXTENSION(operation), m, bytes);
    write_immediate(a, value, bytes);
}

#define DEFINE_REG_REG(name, operation)                                                            \
    void asm_##name##_reg_reg(struct assembler *a, unsigned width, unsigned to, unsigned from) {   \
        write_reg_reg(a, operation, width, to, from);                                              \
    }
#define DEFINE_REG_IMM(name, operation, can_be_small)                                              \
    void asm_##name(struct assembler *a, unsigned width, unsigned reg, int32_t value) {            \
        write_reg_imm(a, operation, width, reg, value, can_be_small);                              \
    }
#define DEFINE_MEM_IMM(name, operation, can_be_small)                                              \
    void asm_##name(struct assembler *a, unsigned width, struct asm_memory m, int32_t value) {     \
        write_mem_imm(a, operation, width, m, value, can_be_small);                                \
    }

DEFINE_REG_REG(add, ADD)
DEFINE_REG_REG(or, OR)
DEFINE_REG_REG(and, AND)
DEFINE_REG_REG(xor, XOR)
DEFINE_REG_REG(cmp, CMP)
DEFINE_REG_IMM(add_reg_imm, ADD, true)
DEFINE_REG_IMM(or_reg_imm, OR, true)
DEFINE_REG_IMM(and_reg_imm, AND, true)
DEFINE_REG_IMM(sub_reg_imm, SUB, true)
DEFINE_REG_IMM(cmp_reg_imm, CMP, true)
DEFINE_REG_IMM(add_reg_imm32, ADD, false)
DEFINE_REG_IMM(and_reg_imm32, AND, false)
DEFINE_REG_IMM(sub_reg_imm32, SUB, false)
DEFINE_REG_IMM(cmp_reg_imm32, CMP, false)
DEFINE_MEM_IMM(add_mem_imm, ADD, true)
DEFINE_MEM_IMM(or_mem_imm, OR, true)
DEFINE_MEM_IMM(cmp_mem_imm, CMP, true)
DEFINE_MEM_IMM(add_mem_imm32, ADD, false)
DEFINE_MEM_IMM(cmp_mem_imm32, CMP, false)

void asm_test_reg_reg(struct assembler *a, unsigned width, unsigned left, unsigned right) {
    encode_reg(a, width, sized(0x85, width), right, left);
}

void asm_cmp_reg_mem(struct assembler *a, unsigned width, unsigned left, struct asm_memory m) {
    encode_mem(a, width, sized(CMP << 3 | 3, width), left, m, 0);
}

void asm_and_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    encode_mem(a, width, sized(AND << 3 | 3, width), to, m, 0);
}

void asm_xor_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    encode_mem(a, width, sized(XOR << 3 | 3, width), to, m, 0);
}

void asm_test_mem_imm(struct assembler *a, unsigned width, struct asm_memory m, int32_t value) {
    unsigned bytes = immediate_size(width);
    encode_mem(a, width, sized(0xf7, width), EXTENSION(0), m, bytes);
    write_immediate(a, value, bytes);
}

void asm_not_reg(struct assembler *a, unsigned width, unsigned reg) {
    encode_reg(a, width, sized(0xf7, width), EXTENSION(2), reg);
}

void asm_inc_reg(struct assembler *a, unsigned width, unsigned reg) {
    encode_reg(a, width, sized(0xff, width), EXTENSION(0), reg);
}

enum shift { SHL = 4, SHR = 5, SAR = 7 };

static void write_shift(struct assembler *a, enum shift shift, unsigned width, unsigned reg,
                        unsigned count) {
    encode_reg(a, width, sized(0xc1, width), EXTENSION(shift), reg);
    write_immediate(a, count, 1);
}

void asm_shl_reg_imm(struct assembler *a, unsigned width, unsigned reg, unsigned count) {
    write_shift(a, SHL, width, reg, count);
}

void asm_shr_reg_imm(struct assembler *a, unsigned width, unsigned reg, unsigned count) {
    write_shift(a, SHR, width, reg, count);
}

void asm_sar_reg_imm(struct assembler *a, unsigned width, unsigned reg, unsigned count) {
    write_shift(a, SAR, width, reg, count);
}

void asm_shr_reg_cl(struct assembler *a, unsigned width, unsigned reg) {
    encode_reg(a, width, sized(0xd3, width), EXTENSION(SHR), reg);
}

void asm_bt_reg_imm(struct assembler *a, unsigned width, unsigned reg, unsigned bit) {
    encode_reg(a, width, 0x0fba, EXTENSION(4), reg);
    write_immediate(a, bit, 1);
}

// ---- flags and others --------------------------------------------------------------------------

void asm_setcc(struct assembler *a, enum asm_condition condition, unsigned reg) {
    encode_reg(a, 8, 0x0f90 | condition, EXTENSION(0), reg);
}

void asm_lahf(struct assembler *a) {
    asm_byte(a, 0x9f);
}

void asm_sahf(struct assembler *a) {
    asm_byte(a, 0x9e);
}

void asm_cld(struct assembler *a) {
    asm_byte(a, 0xfc);
}

void asm_std(struct assembler *a) {
    asm_byte(a, 0xfd);
}

void asm_syscall(struct assembler *a) {
    asm_byte(a, ESCAPE);
    asm_byte(a, 0x05);
}

// ---- control flow ------------------------------------------------------------------------------

static struct asm_jump distance_here(struct assembler *a, bool is_short) {
    struct asm_jump jump = {a->at, is_short};
    a->at += is_short ? 1 : 4;
    asm_land(a, jump);
    return jump;
}

void asm_jmp(struct assembler *a, uint64_t destination) {
    asm_land_at(asm_jmp_forward(a), destination);
}

void asm_call(struct assembler *a, uint64_t destination) {
    asm_byte(a, 0xe8);
    asm_land_at(distance_here(a, false), destination);
}

void asm_jmp_reg(struct assembler *a, unsigned reg) {
    encode_reg(a, 32, 0xff, EXTENSION(4), reg);
}

void asm_call_reg(struct assembler *a, unsigned reg) {
    encode_reg(a, 32, 0xff, EXTENSION(2), reg);
}

void asm_jmp_mem(struct assembler *a, struct asm_memory m) {
    encode_mem(a, 32, 0xff, EXTENSION(4), m, 0);
}

void asm_ret(struct assembler *a) {
    asm_byte(a, 0xc3);
}

struct asm_jump asm_jmp_forward(struct assembler *a) {
    asm_byte(a, 0xe9);
    return distance_here(a, false);
}

struct asm_jump asm_jmp_short(struct assembler *a) {
    asm_byte(a, 0xeb);
    return distance_here(a, true);
}

struct asm_jump asm_jcc_forward(struct assembler *a, enum asm_condition condition) {
    asm_byte(a, ESCAPE);
    asm_byte(a, 0x80 | condition);
    return distance_here(a, false);
}

struct asm_jump asm_jcc_short(struct assembler *a, enum asm_condition condition) {
    asm_byte(a, 0x70 | condition);
    return distance_here(a, true);
}

struct asm_jump asm_jrcxz(struct assembler *a) {
    return asm_counter_branch(a, ASM_JRCXZ, false);
}

struct asm_jump asm_counter_branch(struct assembler *a, enum asm_counter_branch branch,
                                   bool is_narrow) {
    if (is_narrow)
        asm_byte(a, ASM_PREFIX_ADDRESS_SIZE);
    asm_byte(a, 0xe0 | branch);
    return distance_here(a, true);
}

void asm_land(const struct assembler *a, struct asm_jump jump) {
    asm_land_at(jump, asm_address(a));
}

void asm_land_at(struct asm_jump jump, uint64_t destination) {
    if (jump.is_short) {
        *jump.distance = destination - ((uint64_t)jump.distance + 1);
        return;
    }
    uint32_t distance = destination - ((uint64_t)jump.distance + 4);
    __builtin_memcpy(jump.distance, &distance, 4);
}
