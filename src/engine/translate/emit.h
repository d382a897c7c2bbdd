// The operations of before the assembler, for the files that are not written with it yet.
#ifndef QUERN_ENGINE_TRANSLATE_EMIT_H
#define QUERN_ENGINE_TRANSLATE_EMIT_H

#include <string.h>
#include "engine/assembler/sequences.h"

#define emitter              assembler
#define emit8                asm_byte
#define emit32               asm_word32
#define emit64               asm_word64
#define emit_bytes           asm_bytes
#define emit_address         asm_address
#define emit_load_field      asm_load_field
#define emit_load_field32    asm_load_field32
#define emit_store_field     asm_store_field
#define emit_store_field_imm asm_store_field_imm
#define emit_spill           asm_spill
#define emit_unspill         asm_unspill
#define emit_move_imm        asm_mov_reg_imm
#define emit_add_address     asm_lea_sum
#define emit_jump            asm_jmp
#define emit_align_patch     asm_align_patch

static inline void emit_task_operand(struct assembler *a, unsigned reg, unsigned field) {
    asm_operand(a, reg, asm_task(field));
}

static inline void emit_move(struct assembler *a, unsigned to, unsigned from) {
    asm_mov_reg_reg(a, 64, to, from);
}

#endif
