// The way of a store that meets shadow which is not zero: a first store to undefined memory is an
// everyday event and is dealt with here, without C.
#include "engine/cache/gates.h"
#include "engine/translate/emit.h"

uint64_t cache_gate_store[7][2];

enum { JB = 2, JAE = 3, JE = 4, JNE = 5, REFUSALS = 17, WIDTH = 4 };

// A jump whose distance emit_land fills in.
static uint8_t *emit_branch(struct emitter *e, uint8_t condition) {
    emit_bytes(e, (uint8_t[]){0x0f, 0x80 | condition}, 2);
    emit32(e, 0);
    return e->at;
}

static void emit_land(struct emitter *e, uint8_t *from) {
    uint32_t distance = e->at - from;
    memcpy(from - 4, &distance, 4);
}

// op gs:[rcx + at]; an immediate follows
static void emit_piece(struct emitter *e, uint8_t opcode, unsigned reg, unsigned width,
                       unsigned at) {
    emit8(e, 0x65);
    if (width == 2)
        emit8(e, 0x66);
    if (width == 8)
        emit8(e, 0x48);
    emit8(e, opcode);
    emit_bytes(e, (uint8_t[]){0x41 | reg << 3, at}, 2);
}

static void emit_compare(struct emitter *e, unsigned width, unsigned at, uint8_t value) {
    emit_piece(e, width == 1 ? 0x80 : 0x83, 7, width, at);
    emit8(e, value);
}

static void emit_clear(struct emitter *e, unsigned width, unsigned at) {
    emit_piece(e, width == 1 ? 0xc6 : 0xc7, 0, width, at);
    emit_bytes(e, (uint8_t[4]){0}, width < 4 ? width : 4);
}

// Each piece must be all zeros or all ones. Below the stack pointer of the thread's own stack, ones
// mean that it is not addressable. Returns how many jumps to refusal there are.
static unsigned emit_tests(struct emitter *e, unsigned size, uint8_t *refused[REFUSALS]) {
    unsigned width = size < WIDTH ? size : WIDTH, count = 0;
    for (unsigned at = 0; at < size; at += width) {
        emit_compare(e, width, at, 0);
        uint8_t *fine = emit_branch(e, JE);
        emit_compare(e, width, at, 0xff);
        refused[count++] = emit_branch(e, JNE);
        emit_land(e, fine);
    }
    emit_bytes(e, (uint8_t[]){0x48, 0x39, 0xe1}, 3); // cmp rcx, rsp
    uint8_t *above = emit_branch(e, JAE);
    emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x3b}, 3); // cmp rcx, fs:[stack_start]
    emit_task_operand(e, RCX, TASK_STACK_START);
    uint8_t *elsewhere = emit_branch(e, JB);
    emit_bytes(e, (uint8_t[]){0x48, 0x83, 0xe9, 0x80}, 4); // sub rcx, -128: the red zone
    emit_bytes(e, (uint8_t[]){0x48, 0x39, 0xe1}, 3);       // cmp rcx, rsp
    emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x49, 0x80}, 4); // lea rcx, [rcx - 128]
    refused[count++] = emit_branch(e, JB);
    emit_land(e, above);
    emit_land(e, elsewhere);
    return count;
}

static void emit_end(struct emitter *e, bool keeps_flags) {
    if (keeps_flags) {
        emit_bytes(e, (uint8_t[]){0x04, 0x7f, 0x9e}, 3); // add al, 127; sahf
        emit_unspill(e, RAX);
    }
    emit_unspill(e, RCX);
    emit_bytes(e, (uint8_t[]){0x64, 0xff}, 2); // jmp fs:[store_back]
    emit_task_operand(e, 4, TASK_STORE_BACK);
}

static void emit_gate(struct emitter *e, unsigned size, bool keeps_flags) {
    uint8_t *refused[REFUSALS];
    if (keeps_flags) {
        emit_spill(e, RAX);
        emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0}, 4); // lahf; seto al
    }
    unsigned count = emit_tests(e, size, refused), step = size < 8 ? size : 8;
    for (unsigned at = 0; at < size; at += step)
        emit_clear(e, step, at);
    emit_end(e, keeps_flags);
    for (unsigned i = 0; i < count; i++)
        emit_land(e, refused[i]);
    emit_load_field(e, RCX, TASK_STORE_BACK);
    emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x49, 0x100 - STORE_REFUSED}, 4); // lea rcx, [rcx - 5]
    emit_store_field(e, RCX, TASK_STORE_BACK);
    emit_end(e, keeps_flags);
}

void cache_write_store_gates(void) {
    struct emitter e = cache_gate_begin();
    for (unsigned i = 0; i < 7; i++) {
        for (unsigned keeps = 0; keeps < 2; keeps++) {
            cache_gate_store[i][keeps] = emit_address(&e);
            emit_gate(&e, 1u << i, keeps);
        }
    }
    cache_gate_end(&e);
}
