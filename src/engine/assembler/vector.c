// Moves of vector, MMX and mask registers, and the one operation with a VEX prefix.
#include "engine/assembler/encode.h"

enum { PP_NONE, PP_66, PP_F3, PP_F2 }; // prefixes, as VEX and EVEX encode them
enum { MAP_0F = 1, MAP_0F38 = 2 };     // escape bytes
enum { LENGTH_128 = 0, LENGTH_256 = 4 };
enum { NO_THIRD = 0 }; // register 0 is encoded as an unused operand is

// Registers of the operands beyond the first eight: their bits are stored inverted.
static uint8_t inverted(unsigned reg, unsigned index, unsigned base) {
    return (reg & 8 ? 0 : 0x80) | (index & 8 ? 0 : 0x40) | (base & 8 ? 0 : 0x20);
}

static void write_vex(struct assembler *a, uint8_t extensions, unsigned map, bool is_wide,
                      unsigned third, unsigned length, unsigned pp) {
    uint8_t rest = (~third & 15) << 3 | length | pp;
    if (map == MAP_0F && !is_wide && (extensions & 0x60) == 0x60) {
        asm_byte(a, 0xc5);
        asm_byte(a, (extensions & 0x80) | rest);
        return;
    }
    asm_byte(a, 0xc4);
    asm_byte(a, extensions | map);
    asm_byte(a, (is_wide ? 0x80 : 0) | rest);
}

static uint8_t inverted_of(unsigned reg, const struct asm_memory *m) {
    return inverted(reg, m->index < 0 ? 0 : m->index, m->base < 0 ? 0 : m->base);
}

static void vex_mem(struct assembler *a, bool is_wide, unsigned length, unsigned pp, uint8_t opcode,
                    unsigned reg, const struct asm_memory *m) {
    encode_prefixes(a, 32, m);
    write_vex(a, inverted_of(reg, m), MAP_0F, is_wide, NO_THIRD, length, pp);
    asm_byte(a, opcode);
    encode_operand(a, reg, m, 0);
}

static void vex_reg(struct assembler *a, unsigned map, bool is_wide, unsigned pp, uint8_t opcode,
                    unsigned reg, unsigned third, unsigned rm) {
    write_vex(a, inverted(reg, 0, rm), map, is_wide, third, LENGTH_128, pp);
    asm_byte(a, opcode);
    asm_byte(a, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

// vmovdqu64 of 512 bits.
static void evex_move(struct assembler *a, uint8_t opcode, unsigned reg, struct asm_memory m) {
    if (m.form == ASM_SHORTEST && m.displacement)
        m.form = ASM_LONG; // a short one is scaled
    encode_prefixes(a, 32, &m);
    asm_byte(a, 0x62);
    asm_byte(a, inverted_of(reg, &m) | (reg & 16 ? 0 : 0x10) | MAP_0F);
    asm_byte(a, 0x80 | 15 << 3 | 4 | PP_F3); // 64-bit lanes, no third operand
    asm_byte(a, 0x48);                       // 512 bits, no mask
    asm_byte(a, opcode);
    encode_operand(a, reg, &m, 0);
}

// ---- vectors -----------------------------------------------------------------------------------

void asm_vector_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    if (width == 512)
        evex_move(a, 0x6f, to, m);
    else if (width == 256)
        vex_mem(a, false, LENGTH_256, PP_F3, 0x6f, to, &m);
    else
        encode_mem(a, 32, 0x0f10, to, m, 0);
}

void asm_vector_mem_reg(struct assembler *a, unsigned width, struct asm_memory m, unsigned from) {
    if (width == 512)
        evex_move(a, 0x7f, from, m);
    else if (width == 256)
        vex_mem(a, false, LENGTH_256, PP_F3, 0x7f, from, &m);
    else
        encode_mem(a, 32, 0x0f11, from, m, 0);
}

void asm_lanes_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    unsigned opcode = width == 32 ? 0x660f6e : width == 64 ? 0xf30f7e : 0xf30f6f;
    encode_mem(a, 32, opcode, to, m, 0);
}

void asm_lanes_mem_reg(struct assembler *a, unsigned width, struct asm_memory m, unsigned from) {
    unsigned opcode = width == 32 ? 0x660f7e : width == 64 ? 0x660fd6 : 0xf30f7f;
    encode_mem(a, 32, opcode, from, m, 0);
}

void asm_paddusw_reg_mem(struct assembler *a, unsigned to, struct asm_memory m) {
    encode_mem(a, 32, 0x660fdd, to, m, 0);
}

void asm_pcmpeqb_reg_mem(struct assembler *a, unsigned to, struct asm_memory m) {
    encode_mem(a, 32, 0x660f74, to, m, 0);
}

void asm_pmovmskb(struct assembler *a, unsigned to, unsigned from) {
    encode_reg(a, 32, 0x660fd7, to, from);
}

void asm_pxor_reg_reg(struct assembler *a, unsigned to, unsigned from) {
    encode_reg(a, 32, 0x660fef, to, from);
}

// ---- MMX and masks -----------------------------------------------------------------------------

void asm_mmx_reg_mem(struct assembler *a, unsigned to, struct asm_memory m) {
    encode_mem(a, 32, 0x0f6f, to, m, 0);
}

void asm_mmx_mem_reg(struct assembler *a, struct asm_memory m, unsigned from) {
    encode_mem(a, 32, 0x0f7f, from, m, 0);
}

void asm_mov_reg_mmx(struct assembler *a, unsigned to, unsigned from) {
    encode_reg(a, 64, 0x0f7e, from, to);
}

void asm_mask_reg_mem(struct assembler *a, unsigned width, unsigned to, struct asm_memory m) {
    vex_mem(a, width == 64, LENGTH_128, PP_NONE, 0x90, to, &m);
}

void asm_mask_mem_reg(struct assembler *a, unsigned width, struct asm_memory m, unsigned from) {
    vex_mem(a, width == 64, LENGTH_128, PP_NONE, 0x91, from, &m);
}

void asm_mov_reg_mask(struct assembler *a, unsigned width, unsigned to, unsigned from) {
    vex_reg(a, MAP_0F, width == 64, width == 64 ? PP_F2 : PP_NONE, 0x93, to, NO_THIRD, from);
}

// ---- general registers -------------------------------------------------------------------------

void asm_shrx(struct assembler *a, unsigned to, unsigned from, unsigned count) {
    vex_reg(a, MAP_0F38, true, PP_F2, 0xf7, to, count, from);
}
