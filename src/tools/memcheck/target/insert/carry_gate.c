// The gates of carried instructions (carry.c): bits go from shadow memory to a register of the
// thread's state or back, without C.
//
// A gate gets the address in rdi, which is spilled, and the offset of the register's bits in the
// thread's state in rdx, which is spilled too; it runs on the engine's stack. It returns with 0 in
// rcx if the bits were carried, else with 1, and then nothing has changed. It keeps all other
// registers and the flags.
//
// A gate refuses whatever wants a closer look: bytes that may be not addressable, or that would
// look so, and memory that is neither the heap's nor the thread's own stack above its pointer.
#include "base/x86.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/insert/insert.h"
#include "tools/memcheck/target/shadow/shadow.h"

enum { XMM0 = 0, HALF = 16, REFUSALS = 12 };

static uint64_t gates[CARRY_COPY][6][2]; // by the binary logarithm of the size
static uint64_t noaccess;                // address of 16 bytes with that code

uint64_t carry_gate(enum carry_kind kind, unsigned size, bool is_frame) {
    return gates[kind][__builtin_ctz(size)][is_frame];
}

struct gate {
    struct assembler *code;
    struct asm_jump refused[REFUSALS];
    unsigned count;
};

static void refuse_by(struct gate *gate, struct asm_jump jump) {
    gate->refused[gate->count++] = jump;
}

static struct asm_memory shadow_at(unsigned at) {
    return asm_in_segment(ASM_GS, asm_at(RDI, at));
}

static struct asm_memory bits_at(unsigned at) {
    return asm_in_segment(ASM_FS, asm_at32(RDX, task_displacement + INSERT_THREAD_STATE + at));
}

// Ones in the shadow of a stack below its pointer mean that memory is not addressable, so it must
// be clear whether the address lies in a stack. rcx and rsi are free.
static void write_place_test(struct gate *gate) {
    struct assembler *e = gate->code;
    asm_cmp_reg_mem(e, 64, RDI, asm_task(INSERT_STACK_START));
    struct asm_jump below = asm_jcc_forward(e, ASM_BELOW);
    asm_cmp_reg_mem(e, 64, RDI, asm_task(INSERT_STACK_END));
    struct asm_jump above = asm_jcc_forward(e, ASM_ABOVE_EQUAL);
    asm_cmp_reg_mem(e, 64, RDI, asm_task(TASK_SPILL + 8 * RSP));
    refuse_by(gate, asm_jcc_forward(e, ASM_BELOW));
    struct asm_jump in_frame = asm_jmp_forward(e);
    asm_land(e, below);
    asm_land(e, above);
    asm_mov_reg_reg(e, 64, RSI, RDI);
    asm_shr_reg_imm(e, 64, RSI, SEGMENT_BITS);
    asm_cmp_reg_imm(e, 64, RSI, 1 << CELL_BITS);
    refuse_by(gate, asm_jcc_forward(e, ASM_ABOVE_EQUAL));
    asm_mov_reg_imm64(e, RCX, (uint64_t)heap_cells);
    asm_cmp_mem_imm(e, 64, asm_indexed(RCX, RSI, 3, 0), 0);
    refuse_by(gate, asm_jcc_forward(e, ASM_EQUAL));
    asm_land(e, in_frame);
}

// Up to 16 bytes, none of which may have the code for no access; rcx and xmm0 are free.
static void write_byte_test(struct gate *gate, struct asm_memory m, unsigned size) {
    struct assembler *e = gate->code;
    if (size < 4) {
        for (unsigned i = 0; i < size; i++, m.displacement++) {
            asm_cmp_mem_imm(e, 8, m, (int8_t)SHADOW_NOACCESS);
            refuse_by(gate, asm_jcc_forward(e, ASM_EQUAL));
        }
        return;
    }
    asm_lanes_reg_mem(e, size * 8, XMM0, m);
    asm_pcmpeqb_reg_mem(e, XMM0, asm_rip(noaccess));
    asm_pmovmskb(e, RCX, XMM0);
    asm_test_reg_reg(e, 32, RCX, RCX);
    refuse_by(gate, asm_jcc_forward(e, ASM_NOT_EQUAL));
}

static void write_tests(struct gate *gate, enum carry_kind kind, unsigned size) {
    for (unsigned at = 0; at < size; at += HALF) {
        unsigned part = size - at < HALF ? size - at : HALF;
        write_byte_test(gate, shadow_at(at), part);
        if (kind == CARRY_STORE)
            write_byte_test(gate, bits_at(at), part);
    }
}

static void write_copy_word(struct assembler *e, enum carry_kind kind, unsigned size) {
    struct asm_memory from = kind == CARRY_STORE ? bits_at(0) : shadow_at(0);
    if (size >= 4)
        asm_mov_reg_mem(e, size * 8, RSI, from);
    else
        asm_movzx_reg_mem(e, RSI, size * 8, from);
    if (kind == CARRY_STORE)
        asm_mov_mem_reg(e, size * 8, shadow_at(0), RSI);
    else
        asm_mov_mem_reg(e, 64, bits_at(0), RSI);
}

static void write_copy_halves(struct assembler *e, enum carry_kind kind, unsigned size) {
    for (unsigned at = 0; at < size; at += HALF) {
        asm_lanes_reg_mem(e, 128, XMM0, kind == CARRY_STORE ? bits_at(at) : shadow_at(at));
        asm_lanes_mem_reg(e, 128, kind == CARRY_STORE ? shadow_at(at) : bits_at(at), XMM0);
    }
}

// A load defines what is left of a vector register. (SSE keeps the upper parts; follow.c says why
// they do not count.)
static void write_define_rest(struct assembler *e, unsigned size) {
    enum { LAST = 64 - HALF };
    unsigned at = size < 8 ? 8 : size;
    asm_pxor_reg_reg(e, XMM0, XMM0);
    for (; at < LAST; at += HALF)
        asm_lanes_mem_reg(e, 128, bits_at(at), XMM0);
    asm_lanes_mem_reg(e, 128, bits_at(LAST), XMM0);
}

static void write_return(struct assembler *e, unsigned result) {
    asm_lanes_reg_mem(e, 128, XMM0, asm_at(RSP, 0));
    asm_lea(e, 64, RSP, asm_at(RSP, HALF));
    asm_pop_reg(e, RSI);
    asm_restore_flags(e);
    asm_pop_reg(e, RAX);
    asm_mov_reg_imm(e, RCX, result);
    asm_ret(e);
}

static void write_gate(struct assembler *e, enum carry_kind kind, unsigned size, bool is_frame) {
    struct gate gate = {.code = e};
    asm_push_reg(e, RAX);
    asm_save_flags(e);
    asm_push_reg(e, RSI);
    asm_lea(e, 64, RSP, asm_at(RSP, -HALF));
    asm_lanes_mem_reg(e, 128, asm_at(RSP, 0), XMM0);
    if (!is_frame)
        write_place_test(&gate);
    write_tests(&gate, kind, size);
    if (size < HALF)
        write_copy_word(e, kind, size);
    else
        write_copy_halves(e, kind, size);
    if (kind == CARRY_LOAD_VECTOR)
        write_define_rest(e, size);
    write_return(e, 0);
    for (unsigned i = 0; i < gate.count; i++)
        asm_land(e, gate.refused[i]);
    write_return(e, 1);
}

void carry_gates_write(void) {
    struct assembler e = insert_gate_begin();
    segments_start();
    asm_align(&e, HALF, 0);
    noaccess = asm_address(&e);
    for (unsigned i = 0; i < HALF; i++)
        asm_byte(&e, SHADOW_NOACCESS);
    for (unsigned kind = 0; kind < CARRY_COPY; kind++) {
        for (unsigned bits = 0; bits < 6; bits++) {
            for (unsigned frame = 0; frame < 2; frame++) {
                gates[kind][bits][frame] = asm_address(&e);
                write_gate(&e, kind, 1u << bits, frame);
            }
        }
    }
    insert_gate_end(&e);
}
