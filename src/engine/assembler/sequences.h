// Sequences of instructions that generated code repeats: fields of the task, scratch registers,
// flags, calls of C code.
//
// A scratch register is spilled (its value waits in the task's spill slot) and unspilled. Flags are
// saved without the stack: lahf and seto keep all that a target can see but the direction flag.
#ifndef QUERN_ENGINE_ASSEMBLER_SEQUENCES_H
#define QUERN_ENGINE_ASSEMBLER_SEQUENCES_H

#include "engine/assembler/assembler.h"
#include "engine/task_fields.h"

// Displacement from FS of the task; generated code adds a field's offset.
extern int32_t task_displacement;

// ---- the task ----------------------------------------------------------------------------------

// A field of the running thread's task: TASK_… of task_offsets.h.
static inline struct asm_memory asm_task(unsigned field) {
    return asm_in_segment(ASM_FS, asm_absolute(task_displacement + (int32_t)field));
}

// The engine's thread-local variable, in whichever thread runs the code.
static inline struct asm_memory asm_thread_local(const void *variable) {
    int64_t distance = (intptr_t)variable - ((intptr_t)&current_task - task_displacement);
    return asm_in_segment(ASM_FS, asm_absolute(distance));
}

static inline void asm_load_field(struct assembler *a, unsigned reg, unsigned field) {
    asm_mov_reg_mem(a, 64, reg, asm_task(field));
}

static inline void asm_load_field32(struct assembler *a, unsigned reg, unsigned field) {
    asm_mov_reg_mem(a, 32, reg, asm_task(field));
}

static inline void asm_store_field(struct assembler *a, unsigned reg, unsigned field) {
    asm_mov_mem_reg(a, 64, asm_task(field), reg);
}

// 32 bits
static inline void asm_store_field_imm(struct assembler *a, unsigned field, uint32_t value) {
    asm_mov_mem_imm(a, 32, asm_task(field), value);
}

// ---- scratch registers and flags ---------------------------------------------------------------

static inline void asm_spill(struct assembler *a, unsigned reg) {
    asm_store_field(a, reg, TASK_SPILL + 8 * reg);
}

static inline void asm_unspill(struct assembler *a, unsigned reg) {
    asm_load_field(a, reg, TASK_SPILL + 8 * reg);
}

// ax = the flags. rax is the caller's to keep.
static inline void asm_save_flags(struct assembler *a) {
    asm_lahf(a);
    asm_setcc(a, ASM_OVERFLOW, RAX);
}

// The flags = ax: 127 + 1 overflows, 127 + 0 does not.
static inline void asm_restore_flags(struct assembler *a) {
    asm_add_reg_imm(a, 8, RAX, 127);
    asm_sahf(a);
}

// The same with rax spilled meanwhile.
static inline void asm_spill_flags(struct assembler *a) {
    asm_spill(a, RAX);
    asm_save_flags(a);
}

static inline void asm_unspill_flags(struct assembler *a) {
    asm_restore_flags(a);
    asm_unspill(a, RAX);
}

// ---- calls -------------------------------------------------------------------------------------

// Calls C code, wherever the engine was loaded. rax is lost.
static inline void asm_call_function(struct assembler *a, uint64_t function) {
    asm_mov_reg_imm64(a, RAX, function);
    asm_call_reg(a, RAX);
}

// A call of a gate on the engine's stack: asm_begin_gate_call, then code that puts the argument
// into rdi, then asm_gate_call. rsp and rdi are spilled meanwhile.
static inline void asm_begin_gate_call(struct assembler *a) {
    asm_spill(a, RSP);
    asm_spill(a, RDI);
}

static inline void asm_gate_call(struct assembler *a, uint64_t gate) {
    asm_load_field(a, RSP, TASK_HOST_RSP);
    asm_call(a, gate);
    asm_unspill(a, RDI);
    asm_unspill(a, RSP);
}

#endif
