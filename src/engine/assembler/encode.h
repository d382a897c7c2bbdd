// How the assembler's files put an instruction together. Not for other parts.
//
// An opcode is a number whose bytes are, from the top: a prefix that belongs to it (66, f2, f3, or
// none), the escape byte 0f (or none), the opcode byte.
#ifndef QUERN_ENGINE_ASSEMBLER_ENCODE_H
#define QUERN_ENGINE_ASSEMBLER_ENCODE_H

#include "engine/assembler/assembler.h"

// Marks a `reg` that is not a register but a part of the opcode.
#define EXTENSION(number) (0x100u | (number))

// An instruction with a memory operand; `tail` bytes of immediate will follow.
void encode_mem(struct assembler *, unsigned width, unsigned opcode, unsigned reg,
                struct asm_memory, unsigned tail);
// An instruction with two registers; rm is the operand that could be memory.
void encode_reg(struct assembler *, unsigned width, unsigned opcode, unsigned reg, unsigned rm);
// Prefixes of segment, operand size and address size.
void encode_prefixes(struct assembler *, unsigned width, const struct asm_memory *);
// What follows the opcode.
void encode_operand(struct assembler *, unsigned reg, const struct asm_memory *, unsigned tail);

#endif
