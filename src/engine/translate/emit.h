// Writing machine code: the few instruction forms that the engine itself adds.
//
// Code is written where it will run, so that distances are known at once.
#ifndef QUERN_ENGINE_TRANSLATE_EMIT_H
#define QUERN_ENGINE_TRANSLATE_EMIT_H

#include <stdint.h>
#include <string.h>
#include "engine/task.h"

struct emitter {
    uint8_t *at;
};

static inline void emit8(struct emitter *e, uint8_t byte) {
    *e->at++ = byte;
}

static inline void emit32(struct emitter *e, uint32_t value) {
    memcpy(e->at, &value, 4);
    e->at += 4;
}

static inline void emit64(struct emitter *e, uint64_t value) {
    memcpy(e->at, &value, 8);
    e->at += 8;
}

static inline void emit_bytes(struct emitter *e, const void *bytes, unsigned count) {
    memcpy(e->at, bytes, count);
    e->at += count;
}

static inline uint64_t emit_address(const struct emitter *e) {
    return (uint64_t)e->at;
}

// fs:[task field] operand after an opcode; reg is the modrm reg field.
static inline void emit_task_operand(struct emitter *e, unsigned reg, unsigned field) {
    emit8(e, (reg & 7) << 3 | 4);
    emit8(e, 0x25);
    emit32(e, task_displacement + field);
}

static inline void emit_task_op(struct emitter *e, uint8_t opcode, unsigned reg, unsigned field) {
    emit8(e, 0x64);
    emit8(e, 0x48 | (reg >> 3) << 2);
    emit8(e, opcode);
    emit_task_operand(e, reg, field);
}

// mov reg, fs:[field]
static inline void emit_load_field(struct emitter *e, unsigned reg, unsigned field) {
    emit_task_op(e, 0x8b, reg, field);
}

// mov fs:[field], reg
static inline void emit_store_field(struct emitter *e, unsigned reg, unsigned field) {
    emit_task_op(e, 0x89, reg, field);
}

static inline void emit_spill(struct emitter *e, unsigned reg) {
    emit_store_field(e, reg, TASK_SPILL + 8 * reg);
}

static inline void emit_unspill(struct emitter *e, unsigned reg) {
    emit_load_field(e, reg, TASK_SPILL + 8 * reg);
}

// mov reg32, fs:[field] (zero-extends)
static inline void emit_load_field32(struct emitter *e, unsigned reg, unsigned field) {
    emit8(e, 0x64);
    if (reg >= 8)
        emit8(e, 0x44);
    emit8(e, 0x8b);
    emit_task_operand(e, reg, field);
}

// mov dword fs:[field], imm32
static inline void emit_store_field_imm(struct emitter *e, unsigned field, uint32_t value) {
    emit8(e, 0x64);
    emit8(e, 0xc7);
    emit_task_operand(e, 0, field);
    emit32(e, value);
}

// mov to, from (64 bits)
static inline void emit_move(struct emitter *e, unsigned to, unsigned from) {
    emit8(e, 0x48 | (from >> 3) << 2 | to >> 3);
    emit8(e, 0x89);
    emit8(e, 0xc0 | (from & 7) << 3 | (to & 7));
}

// mov reg, value, in the shortest form
static inline void emit_move_imm(struct emitter *e, unsigned reg, uint64_t value) {
    if (value <= UINT32_MAX) {
        if (reg >= 8)
            emit8(e, 0x41);
        emit8(e, 0xb8 | (reg & 7));
        emit32(e, value);
    } else {
        emit8(e, 0x48 | reg >> 3);
        emit8(e, 0xb8 | (reg & 7));
        emit64(e, value);
    }
}

// lea to, [base + index]
static inline void emit_add_address(struct emitter *e, unsigned to, unsigned base, unsigned index) {
    emit8(e, 0x48 | (to >> 3) << 2 | (index >> 3) << 1 | base >> 3);
    emit8(e, 0x8d);
    emit8(e, 0x44 | (to & 7) << 3);
    emit8(e, (index & 7) << 3 | (base & 7));
    emit8(e, 0);
}

// jmp rel32
static inline void emit_jump(struct emitter *e, uint64_t destination) {
    emit8(e, 0xe9);
    emit32(e, destination - (emit_address(e) + 4));
}

// Keeps the 4 bytes that will stand `ahead` bytes from here within one cache line, so that they can
// be replaced by one store while other threads run them.
static inline void emit_align_patch(struct emitter *e, unsigned ahead) {
    static const uint8_t nops[4][3] = {{0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
    unsigned within = (emit_address(e) + ahead) & 63;
    if (within > 60)
        emit_bytes(e, nops[64 - within], 64 - within);
}

#endif
