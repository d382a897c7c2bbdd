// A small assembler: writes x86-64 machine code, one named operation for each instruction.
//
// Code is written where it will run, so distances are known at once. The caller makes sure that
// there is room. The assembler allocates nothing, calls nothing and uses general registers only, so
// any code in the target may call it.
//
// Words:
//   width      of an operation, in bits: 8, 16, 32 or 64. Widths of 32 bits clear the upper half of
//              a register, as on the processor
//   memory     a memory operand (struct asm_memory)
//   jump       a jump whose destination is not known yet; asm_land makes it lead to the place that
//              is written next
//
// Operations are named asm_OPERATION_TO_FROM: asm_mov_mem_reg stores a register. Registers are
// numbered as in base/x86.h.
//
// Patching: after an operation with a memory operand or an immediate, `displacement` and
// `immediate` of the assembler point at these fields. An operand with a displacement of fixed size
// (asm_at8, asm_at32) can be patched.
#ifndef QUERN_ENGINE_ASSEMBLER_ASSEMBLER_H
#define QUERN_ENGINE_ASSEMBLER_ASSEMBLER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/x86.h"

struct assembler {
    uint8_t *at;           // where the next byte goes
    uint8_t *displacement; // the field of the last memory operand
    uint8_t *immediate;    // the last immediate
};

enum { ASM_NONE = -1 }; // no register
enum asm_segment { ASM_NO_SEGMENT, ASM_FS, ASM_GS };
enum asm_form {
    ASM_SHORTEST, // no displacement, 8 or 32 bits, as it fits
    ASM_BYTE,     // always 8 bits
    ASM_LONG,     // always 32 bits
    ASM_UNSCALED, // none or 32 bits, always with a SIB byte: EVEX scales short displacements
};

struct asm_memory {
    int64_t displacement; // is_rip: the address itself
    int8_t base, index;   // ASM_NONE: none
    uint8_t scale;        // the index is shifted by it: 0 to 3
    uint8_t segment;      // enum asm_segment
    uint8_t form;         // enum asm_form
    bool is_rip;          // relative to the instruction pointer
    bool is_narrow;       // the address is computed in 32 bits
};

// Condition codes as instructions encode them. The opposite condition is `condition ^ 1`.
enum asm_condition {
    ASM_OVERFLOW,
    ASM_NOT_OVERFLOW,
    ASM_BELOW,
    ASM_ABOVE_EQUAL,
    ASM_EQUAL,
    ASM_NOT_EQUAL,
    ASM_BELOW_EQUAL,
    ASM_ABOVE,
    ASM_SIGN,
    ASM_NOT_SIGN,
    ASM_PARITY,
    ASM_NOT_PARITY,
    ASM_LESS,
    ASM_GREATER_EQUAL,
    ASM_LESS_EQUAL,
    ASM_GREATER,
    ASM_CARRY = ASM_BELOW,
    ASM_NOT_CARRY = ASM_ABOVE_EQUAL,
};

// Bytes before an opcode that say how it addresses memory; instructions that are copied have them.
enum asm_prefix {
    ASM_PREFIX_ES = 0x26,
    ASM_PREFIX_CS = 0x2e,
    ASM_PREFIX_SS = 0x36,
    ASM_PREFIX_DS = 0x3e,
    ASM_PREFIX_FS = 0x64,
    ASM_PREFIX_GS = 0x65,
    ASM_PREFIX_ADDRESS_SIZE = 0x67,
};
static inline bool asm_is_address_prefix(uint8_t byte) {
    return byte == ASM_PREFIX_FS || byte == ASM_PREFIX_GS || byte == ASM_PREFIX_ADDRESS_SIZE ||
           byte == ASM_PREFIX_ES || byte == ASM_PREFIX_CS || byte == ASM_PREFIX_SS ||
           byte == ASM_PREFIX_DS;
}
// A REX prefix extends the numbers of registers (R, X, B) or the operand (W).
static inline bool asm_is_rex(uint8_t byte) {
    return (byte & 0xf0) == 0x40;
}
enum { ASM_REX_B = 1, ASM_REX_X = 2, ASM_REX_R = 4, ASM_REX_W = 8 };

// ---- operands ----------------------------------------------------------------------------------

static inline struct asm_memory asm_at(int base, int64_t displacement) {
    return (struct asm_memory){displacement, .base = base, .index = ASM_NONE};
}
// The same with a displacement of 8 or 32 bits, whatever its value.
static inline struct asm_memory asm_at8(int base, int64_t displacement) {
    return (struct asm_memory){displacement, .base = base, .index = ASM_NONE, .form = ASM_BYTE};
}
static inline struct asm_memory asm_at32(int base, int64_t displacement) {
    return (struct asm_memory){displacement, .base = base, .index = ASM_NONE, .form = ASM_LONG};
}
// base + (index << scale) + displacement; either register may be ASM_NONE.
static inline struct asm_memory asm_indexed(int base, int index, unsigned scale,
                                            int64_t displacement) {
    return (struct asm_memory){displacement, .base = base, .index = index, .scale = scale};
}
// A fixed address below 2 GiB, or a distance from the start of a segment.
static inline struct asm_memory asm_absolute(int64_t address) {
    return asm_at(ASM_NONE, address);
}
static inline struct asm_memory asm_rip(uint64_t address) {
    return (struct asm_memory){(int64_t)address, .is_rip = true, .base = ASM_NONE,
                               .index = ASM_NONE};
}
static inline struct asm_memory asm_in_segment(enum asm_segment segment, struct asm_memory memory) {
    memory.segment = segment;
    return memory;
}

// ---- data --------------------------------------------------------------------------------------

static inline uint64_t asm_address(const struct assembler *a) {
    return (uint64_t)a->at;
}
static inline void asm_byte(struct assembler *a, uint8_t byte) {
    *a->at++ = byte;
}
void asm_bytes(struct assembler *, const void *bytes, unsigned count);
void asm_word32(struct assembler *, uint32_t value);
void asm_word64(struct assembler *, uint64_t value);
void asm_align(struct assembler *, unsigned alignment, uint8_t filler);
// The shortest sequence of instructions without effect that fills the bytes.
void asm_nops(struct assembler *, unsigned bytes);
// Keeps the 4 bytes that will stand `ahead` bytes from here within one cache line, so that one
// store replaces them while other threads run them.
void asm_align_patch(struct assembler *, unsigned ahead);
// Everything of an operand that follows the opcode: modrm, SIB, displacement. For instructions that
// are copied; `reg` is the modrm field of that name.
void asm_operand(struct assembler *, unsigned reg, struct asm_memory);

// ---- moves -------------------------------------------------------------------------------------

void asm_mov_reg_reg(struct assembler *, unsigned width, unsigned to, unsigned from);
void asm_mov_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);
void asm_mov_mem_reg(struct assembler *, unsigned width, struct asm_memory, unsigned from);
// All 64 bits, in the shorter of two forms; asm_mov_reg_imm64 always takes the long one.
void asm_mov_reg_imm(struct assembler *, unsigned to, uint64_t value);
void asm_mov_reg_imm64(struct assembler *, unsigned to, uint64_t value);
// 64 bits: the value is sign-extended from 32.
void asm_mov_mem_imm(struct assembler *, unsigned width, struct asm_memory, uint32_t value);
// From 8 or 16 bits to the whole register.
void asm_movzx_reg_reg(struct assembler *, unsigned to, unsigned width, unsigned from);
void asm_movzx_reg_mem(struct assembler *, unsigned to, unsigned width, struct asm_memory);
void asm_lea(struct assembler *, unsigned width, unsigned to, struct asm_memory);
// lea to, [base + index]; keeps flags, and has the same size for all registers.
void asm_lea_sum(struct assembler *, unsigned to, unsigned base, unsigned index);

void asm_push_reg(struct assembler *, unsigned);
void asm_pop_reg(struct assembler *, unsigned);
void asm_push_mem(struct assembler *, struct asm_memory);
void asm_pop_mem(struct assembler *, struct asm_memory);
void asm_push_imm(struct assembler *, int32_t); // pushes 64 bits
void asm_pushf(struct assembler *);
void asm_popf(struct assembler *);

// ---- arithmetic --------------------------------------------------------------------------------

// Immediates take 8 bits where they fit, else 32 (16 in operations of that width). Operations whose
// name ends in imm32 always take 32.

void asm_add_reg_reg(struct assembler *, unsigned width, unsigned to, unsigned from);
void asm_or_reg_reg(struct assembler *, unsigned width, unsigned to, unsigned from);
void asm_and_reg_reg(struct assembler *, unsigned width, unsigned to, unsigned from);
void asm_xor_reg_reg(struct assembler *, unsigned width, unsigned to, unsigned from);
void asm_cmp_reg_reg(struct assembler *, unsigned width, unsigned left, unsigned right);
void asm_test_reg_reg(struct assembler *, unsigned width, unsigned left, unsigned right);
void asm_cmp_reg_mem(struct assembler *, unsigned width, unsigned left, struct asm_memory);
void asm_and_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);
void asm_xor_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);

void asm_add_reg_imm(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_or_reg_imm(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_and_reg_imm(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_sub_reg_imm(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_cmp_reg_imm(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_add_reg_imm32(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_and_reg_imm32(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_sub_reg_imm32(struct assembler *, unsigned width, unsigned reg, int32_t);
void asm_cmp_reg_imm32(struct assembler *, unsigned width, unsigned reg, int32_t);

void asm_add_mem_imm(struct assembler *, unsigned width, struct asm_memory, int32_t);
void asm_cmp_mem_imm(struct assembler *, unsigned width, struct asm_memory, int32_t);
void asm_add_mem_imm32(struct assembler *, unsigned width, struct asm_memory, int32_t);
void asm_or_mem_imm(struct assembler *, unsigned width, struct asm_memory, int32_t);
void asm_cmp_mem_imm32(struct assembler *, unsigned width, struct asm_memory, int32_t);
void asm_test_mem_imm(struct assembler *, unsigned width, struct asm_memory, int32_t);

void asm_not_reg(struct assembler *, unsigned width, unsigned reg);
void asm_inc_reg(struct assembler *, unsigned width, unsigned reg);
void asm_shl_reg_imm(struct assembler *, unsigned width, unsigned reg, unsigned count);
void asm_shr_reg_imm(struct assembler *, unsigned width, unsigned reg, unsigned count);
void asm_sar_reg_imm(struct assembler *, unsigned width, unsigned reg, unsigned count);
void asm_shr_reg_cl(struct assembler *, unsigned width, unsigned reg);
// to = from >> count; keeps flags. BMI2 has it.
void asm_shrx(struct assembler *, unsigned to, unsigned from, unsigned count);
// The carry flag takes a bit of the register.
void asm_bt_reg_imm(struct assembler *, unsigned width, unsigned reg, unsigned bit);

// ---- flags and others --------------------------------------------------------------------------

void asm_setcc(struct assembler *, enum asm_condition, unsigned reg); // the low byte
void asm_lahf(struct assembler *);
void asm_sahf(struct assembler *);
void asm_cld(struct assembler *);
void asm_std(struct assembler *);
void asm_syscall(struct assembler *);

// ---- control flow ------------------------------------------------------------------------------

void asm_jmp(struct assembler *, uint64_t destination);
void asm_call(struct assembler *, uint64_t destination);
void asm_jmp_reg(struct assembler *, unsigned);
void asm_call_reg(struct assembler *, unsigned);
void asm_jmp_mem(struct assembler *, struct asm_memory);
void asm_ret(struct assembler *);

struct asm_jump {
    uint8_t *distance; // the field, behind which the distance starts
    bool is_short;     // it has 8 bits, else 32
};
// Jumps forward. Short ones reach 127 bytes.
struct asm_jump asm_jmp_forward(struct assembler *);
struct asm_jump asm_jmp_short(struct assembler *);
struct asm_jump asm_jcc_forward(struct assembler *, enum asm_condition);
struct asm_jump asm_jcc_short(struct assembler *, enum asm_condition);
struct asm_jump asm_jrcxz(struct assembler *); // short: the processor has no other
// Branches on the counter: rcx, or ecx where it is narrow. Short, too.
enum asm_counter_branch { ASM_LOOPNE, ASM_LOOPE, ASM_LOOP, ASM_JRCXZ };
struct asm_jump asm_counter_branch(struct assembler *, enum asm_counter_branch, bool is_narrow);
// The jump leads to what is written next, or to any address that it reaches.
void asm_land(const struct assembler *, struct asm_jump);
void asm_land_at(struct asm_jump, uint64_t destination);

// ---- vector, MMX and mask registers ------------------------------------------------------------

// A vector register from or to memory without alignment: as much of it as fits into 128, 256 (AVX)
// or 512 bits (AVX-512).
void asm_vector_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);
void asm_vector_mem_reg(struct assembler *, unsigned width, struct asm_memory, unsigned from);
// The low 32, 64 or 128 bits, by integer moves (movd, movq, movdqu); a load clears the rest.
void asm_lanes_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);
void asm_lanes_mem_reg(struct assembler *, unsigned width, struct asm_memory, unsigned from);
// Adds eight lanes of 16 bits, unsigned, with saturation. The memory is aligned.
void asm_paddusw_reg_mem(struct assembler *, unsigned to, struct asm_memory);
// Sets each byte to ones where it equals the byte in memory, else to zero. The memory is aligned.
void asm_pcmpeqb_reg_mem(struct assembler *, unsigned to, struct asm_memory);
// to = the highest bits of the 16 bytes of a vector register.
void asm_pmovmskb(struct assembler *, unsigned to, unsigned from);
void asm_pxor_reg_reg(struct assembler *, unsigned to, unsigned from); // 128 bits
void asm_mmx_reg_mem(struct assembler *, unsigned to, struct asm_memory);
void asm_mmx_mem_reg(struct assembler *, struct asm_memory, unsigned from);
void asm_mov_reg_mmx(struct assembler *, unsigned to, unsigned from);
// Mask registers, in 16 or 64 bits (AVX-512BW).
void asm_mask_reg_mem(struct assembler *, unsigned width, unsigned to, struct asm_memory);
void asm_mask_mem_reg(struct assembler *, unsigned width, struct asm_memory, unsigned from);
void asm_mov_reg_mask(struct assembler *, unsigned width, unsigned to, unsigned from);

#endif
