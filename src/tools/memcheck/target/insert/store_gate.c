// The way of a store that meets shadow which is not zero: a first store to undefined memory is an
// everyday event and is dealt with here, without C.
#include "tools/memcheck/target/insert/insert.h"

uint64_t store_gates[7][2];

enum { REFUSALS = 17, WIDTH = 4 };

// The shadow of what lies `at` bytes from rcx.
static struct asm_memory shadow_at(unsigned at) {
    return asm_in_segment(ASM_GS, asm_at8(RCX, at));
}

// Each piece must be all zeros or all ones. Below the stack pointer of the thread's own stack, ones
// mean that it is not addressable. Returns how many jumps to refusal there are.
static unsigned write_tests(struct assembler *e, unsigned size, struct asm_jump refused[REFUSALS]) {
    unsigned width = size < WIDTH ? size : WIDTH, count = 0;
    for (unsigned at = 0; at < size; at += width) {
        asm_cmp_mem_imm(e, width * 8, shadow_at(at), 0);
        struct asm_jump fine = asm_jcc_forward(e, ASM_EQUAL);
        asm_cmp_mem_imm(e, width * 8, shadow_at(at), -1);
        refused[count++] = asm_jcc_forward(e, ASM_NOT_EQUAL);
        asm_land(e, fine);
    }
    asm_cmp_reg_reg(e, 64, RCX, RSP);
    struct asm_jump above = asm_jcc_forward(e, ASM_ABOVE_EQUAL);
    asm_cmp_reg_mem(e, 64, RCX, asm_task(INSERT_STACK_START));
    struct asm_jump elsewhere = asm_jcc_forward(e, ASM_BELOW);
    asm_sub_reg_imm(e, 64, RCX, -RED_ZONE);
    asm_cmp_reg_reg(e, 64, RCX, RSP);
    asm_lea(e, 64, RCX, asm_at(RCX, -RED_ZONE)); // as it was
    refused[count++] = asm_jcc_forward(e, ASM_BELOW);
    asm_land(e, above);
    asm_land(e, elsewhere);
    return count;
}

static void write_end(struct assembler *e, bool keeps_flags) {
    if (keeps_flags)
        asm_unspill_flags(e);
    asm_unspill(e, RCX);
    asm_jmp_mem(e, asm_task(STORE_BACK));
}

static void write_gate(struct assembler *e, unsigned size, bool keeps_flags) {
    struct asm_jump refused[REFUSALS];
    if (keeps_flags)
        asm_spill_flags(e);
    unsigned count = write_tests(e, size, refused), step = size < 8 ? size : 8;
    for (unsigned at = 0; at < size; at += step)
        asm_mov_mem_imm(e, step * 8, shadow_at(at), 0);
    write_end(e, keeps_flags);
    for (unsigned i = 0; i < count; i++)
        asm_land(e, refused[i]);
    asm_load_field(e, RCX, STORE_BACK);
    asm_lea(e, 64, RCX, asm_at(RCX, -STORE_REFUSED));
    asm_store_field(e, RCX, STORE_BACK);
    write_end(e, keeps_flags);
}

void store_gates_write(void) {
    struct assembler e = insert_gate_begin();
    for (unsigned i = 0; i < 7; i++) {
        for (unsigned keeps = 0; keeps < 2; keeps++) {
            store_gates[i][keeps] = asm_address(&e);
            write_gate(&e, 1u << i, keeps);
        }
    }
    insert_gate_end(&e);
}
