// Checks of cache lines, in three steps: whether the line is the one that its set has used last, in
// place; whether it is known to be in the cache, behind the block and, for data, in code shared by
// all blocks; a call of the tool.
//
// For each group of lines that share the low bits of their numbers, a thread remembers the one used
// last, as the address of its first byte. An access is within a line if address xor line is at most
// line size less access size.
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

enum { RECENT = 512 }; // lines remembered, per thread and cache

static _Thread_local uint64_t recent[TOOL_CACHES][RECENT] __attribute__((tls_model("local-exec")));

static _Thread_local struct tool_lines *lines __attribute__((tls_model("local-exec")));

static struct {
    unsigned bits;
    uint64_t mask; // of the numbers of lines: which group
} caches[TOOL_CACHES];

enum { LARGEST = 64 };
static uint64_t known_gates[LARGEST + 1]; // by size of access; 0: not made yet

void tool_set_lines(enum tool_cache cache, unsigned bits, uint64_t sets) {
    caches[cache].bits = bits;
    caches[cache].mask = (sets < RECENT ? sets : RECENT) - 1;
}

__attribute__((target("general-regs-only"))) void tool_used_line(enum tool_cache cache,
                                                                 uint64_t line) {
    recent[cache][line & caches[cache].mask] = line << caches[cache].bits;
}

void tool_set_thread_lines(struct tool_lines *own) {
    memset(recent, 0, sizeof recent);
    lines = own;
}

// Of a thread-local variable, from FS.
static int32_t displacement_of(const void *variable) {
    return (int32_t)((intptr_t)variable - ((intptr_t)self - task_displacement));
}

// mov reg, fs:[lines]
static void emit_load_lines(struct emitter *e, unsigned reg) {
    emit_bytes(e, (uint8_t[]){0x64, 0x48 | (reg >> 3) << 2, 0x8b, (reg & 7) << 3 | 4, 0x25}, 5);
    emit32(e, displacement_of(&lines));
}

void hooks_emit_address(struct emitter *e, const struct tool_access *access, unsigned to) {
    if (access->base < 0 && access->index < 0) {
        emit_move_imm(e, to, access->displacement);
    } else {
        int base = access->base, index = access->index;
        emit8(e, (access->narrow ? 0x40 : 0x48) | (to >= 8 ? 4 : 0) | (index >= 8 ? 2 : 0) |
                     (base >= 8 ? 1 : 0));
        emit8(e, 0x8d); // lea to, [base + index*scale + displacement]
        emit8(e, (base >= 0 ? 0x84 : 0x04) | (to & 7) << 3);
        unsigned scale = access->scale == 8 ? 3 : access->scale == 4 ? 2 : access->scale == 2;
        emit8(e, scale << 6 | (index >= 0 ? (index & 7) << 3 : 0x20) | (base >= 0 ? base & 7 : 5));
        emit32(e, access->displacement);
    }
    if (access->segment) {
        emit_load_field(e, RDX, access->segment == SEGMENT_FS ? TASK_FS_BASE : TASK_GS_BASE);
        emit_add_address(e, to, to, RDX);
    }
}

void hooks_emit_save_flags(struct emitter *e) {
    emit_spill(e, RAX);
    emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0}, 4); // lahf; seto al
}

void hooks_emit_restore_flags(struct emitter *e) {
    emit_bytes(e, (uint8_t[]){0x04, 0x7f, 0x9e}, 3); // add al, 127; sahf
    emit_unspill(e, RAX);
}

// A way out of line from the jump that has just been written. For data, rcx and rdx are spilled,
// the address is in rcx, and no flag is to be kept.
static struct detour *add_detour(struct builder *b, uint32_t size, uint64_t line,
                                 tool_line_function *function, uint32_t argument) {
    struct detour *detour = &b->detours[b->detour_count++];
    *detour = (struct detour){.branch = b->e.at - 4,
                              .back = b->e.at,
                              .size = size,
                              .line = line,
                              .function = function,
                              .argument = argument};
    return detour;
}

void tool_insert_line_check(struct tool_block *block, const struct tool_access *access,
                            tool_line_function *function, uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct emitter *e = &b->e;
    unsigned bits = caches[TOOL_CACHE_DATA].bits;
    bool dead = builder_flags_are_dead(b);
    emit_spill(e, RCX);
    emit_spill(e, RDX);
    hooks_emit_address(e, access, RCX);
    if (!dead)
        hooks_emit_save_flags(e);
    emit_bytes(e, (uint8_t[]){0x89, 0xca, 0xc1, 0xea, bits - 3}, 5); // mov edx, ecx; shr edx, n
    emit_bytes(e, (uint8_t[]){0x81, 0xe2}, 2);                       // and edx, mask
    emit32(e, caches[TOOL_CACHE_DATA].mask << 3);
    emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x8b, 0x92}, 4); // mov rdx, fs:[rdx + lines]
    emit32(e, displacement_of(recent[TOOL_CACHE_DATA]));
    emit_bytes(e, (uint8_t[]){0x48, 0x31, 0xca, 0x48, 0x81, 0xfa}, 6); // xor rdx, rcx; cmp rdx, …
    emit32(e, access->size < 1u << bits ? (1u << bits) - access->size : 0);
    emit_bytes(e, (uint8_t[]){0x0f, 0x87}, 2); // ja
    emit32(e, 0);
    add_detour(b, access->size, 0, function, argument);
    if (!dead)
        hooks_emit_restore_flags(e);
    emit_unspill(e, RDX);
    emit_unspill(e, RCX);
}

void tool_insert_code_line_check(struct tool_block *block, uint64_t line,
                                 tool_line_function *function, uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct emitter *e = &b->e;
    uint64_t start = line << caches[TOOL_CACHE_CODE].bits;
    int32_t place = displacement_of(recent[TOOL_CACHE_CODE]) +
                    (int32_t)((line & caches[TOOL_CACHE_CODE].mask) * 8);
    if (start <= INT32_MAX && builder_flags_are_dead(b)) {
        emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x81, 0x3c, 0x25}, 5); // cmp qword fs:[place], line
        emit32(e, place);
        emit32(e, start);
        emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
        emit32(e, 0);
        add_detour(b, 0, line, function, argument)->spills = true;
        return;
    }
    emit_spill(e, RCX);
    if (start <= INT32_MAX) {
        emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x8b, 0x0c, 0x25}, 5); // mov rcx, fs:[place]
        emit32(e, place);
        emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x89}, 3); // lea rcx, [rcx - line]
        emit32(e, -start);
        emit_bytes(e, (uint8_t[]){0xe3, 5}, 2); // jrcxz over the next
        emit8(e, 0xe9);
        emit32(e, 0);
        add_detour(b, 0, line, function, argument);
    } else {
        emit8(e, 0xe9); // code high up is rare
        emit32(e, 0);
        add_detour(b, 0, line, function, argument);
    }
    emit_unspill(e, RCX);
}

void tool_insert_target_call(struct tool_block *block, tool_line_function *function,
                             uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct insn *insn = (struct insn *)b->rest;
    insn_operands(insn);
    emit_spill(&b->e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    translate_load_operand(b, insn, &insn->operands[0]);
    hooks_emit_fast_call(&b->e, (tool_fast_function *)(void *)function, argument);
    emit_unspill(&b->e, RCX);
    builder_state(b, STATE_WITHIN, 0);
}

// Goes to r8 if the access of so many bytes at rcx lies within a known line, to r9 if not.
static uint64_t known_gate(uint32_t size) {
    enum { BITS_OF_LINE = 4 }; // of sizeof(struct tool_line)
    unsigned bits = caches[TOOL_CACHE_DATA].bits;
    uint32_t most = size < 1u << bits ? (1u << bits) - size : 0;
    if (known_gates[size])
        return known_gates[size];
    struct emitter start = cache_gate_begin(), *e = &start;
    uint64_t gate = emit_address(e);
    emit_load_lines(e, R10);
    emit_bytes(e, (uint8_t[]){0x48, 0x89, 0xca, 0x48, 0xc1, 0xea, bits - BITS_OF_LINE}, 7);
    emit_bytes(e, (uint8_t[]){0x81, 0xe2}, 2); // mov rdx, rcx; shr rdx, n; and edx, mask
    emit32(e, (TOOL_LINES - 1) << BITS_OF_LINE);
    emit_bytes(e, (uint8_t[]){0x4d, 0x8d, 0x94, 0x12}, 4); // lea r10, [r10 + rdx + known]
    emit32(e, offsetof(struct tool_lines, known[TOOL_CACHE_DATA]));
    emit_bytes(e, (uint8_t[]){0x49, 0x8b, 0x12, 0x48, 0x31, 0xca, 0x48, 0x81, 0xfa}, 9);
    emit32(e, most);                        // mov rdx, [r10]; xor rdx, rcx; cmp rdx, most
    emit_bytes(e, (uint8_t[]){0x77, 0}, 2); // ja
    uint8_t *over = e->at;
    emit_load_lines(e, RDX);
    // mov r9, [rdx]; inc r9; mov [rdx], r9; mov rdx, [r10 + 8]; mov [rdx], r9; mov r9, [r10]
    emit_bytes(e, (uint8_t[]){0x4c, 0x8b, 0x0a, 0x49, 0xff, 0xc1, 0x4c, 0x89, 0x0a}, 9);
    emit_bytes(e, (uint8_t[]){0x49, 0x8b, 0x52, 0x08, 0x4c, 0x89, 0x0a, 0x4d, 0x8b, 0x0a}, 10);
    emit_bytes(e, (uint8_t[]){0x89, 0xca, 0xc1, 0xea, bits - 3, 0x81, 0xe2}, 7);
    emit32(e, caches[TOOL_CACHE_DATA].mask << 3); // mov edx, ecx; shr edx, n; and edx, mask
    emit_bytes(e, (uint8_t[]){0x64, 0x4c, 0x89, 0x8a}, 4); // mov fs:[rdx + recent], r9
    emit32(e, displacement_of(recent[TOOL_CACHE_DATA]));
    emit_move(e, R9, R8);
    over[-1] = e->at - over;
    emit_move(e, RDX, R9);
    emit_unspill(e, R8);
    emit_unspill(e, R9);
    emit_unspill(e, R10);
    emit_bytes(e, (uint8_t[]){0xff, 0xe2}, 2); // jmp rdx
    cache_gate_end(e);
    known_gates[size] = gate;
    return gate;
}

static void write_data_detour(struct emitter *e, const struct detour *detour) {
    uint64_t gate = known_gate(detour->size);
    emit_spill(e, R8);
    emit_spill(e, R9);
    emit_spill(e, R10);
    emit_move_imm(e, R8, (uint64_t)detour->back);
    emit_move_imm(e, R9, emit_address(e) + 6 + 5); // behind the next two
    emit_jump(e, gate);
}

static void jump_back(struct emitter *e, const struct detour *detour) {
    if (detour->spills)
        emit_unspill(e, RCX);
    emit_jump(e, (uint64_t)detour->back);
}

static void write_code_detour(struct emitter *e, const struct detour *detour) {
    uint64_t start = detour->line << caches[TOOL_CACHE_CODE].bits;
    uint64_t slot = detour->line & caches[TOOL_CACHE_CODE].mask;
    uint32_t place = offsetof(struct tool_lines, known[TOOL_CACHE_CODE]) +
                     sizeof(struct tool_line) * (detour->line % TOOL_LINES);
    if (start > INT32_MAX)
        return;
    if (detour->spills)
        emit_spill(e, RCX);
    emit_spill(e, RDX);
    emit_load_lines(e, RDX);
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x8a}, 3); // mov rcx, [rdx + place]
    emit32(e, place);
    emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x89}, 3); // lea rcx, [rcx - line]
    emit32(e, -start);
    emit_bytes(e, (uint8_t[]){0xe3, 2, 0xeb, 0}, 4); // jrcxz over the next; jmp to the call
    uint8_t *over = e->at;
    // mov rcx, [rdx]; lea rcx, [rcx + 1]; mov [rdx], rcx; mov rdx, [rdx + place + 8]; mov [rdx],
    // rcx
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0a, 0x48, 0x8d, 0x49, 0x01, 0x48, 0x89, 0x0a}, 10);
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x92}, 3);
    emit32(e, place + offsetof(struct tool_line, stamp));
    emit_bytes(e, (uint8_t[]){0x48, 0x89, 0x0a}, 3);
    emit_bytes(e, (uint8_t[]){0x64, 0x48, 0xc7, 0x04, 0x25}, 5); // mov qword fs:[recent], line
    emit32(e, displacement_of(&recent[TOOL_CACHE_CODE][slot]));
    emit32(e, start);
    emit_unspill(e, RDX);
    jump_back(e, detour);
    over[-1] = e->at - over;
    emit_unspill(e, RDX);
}

void hooks_write_detours(struct builder *b) {
    for (unsigned i = 0; i < b->detour_count; i++) {
        const struct detour *detour = &b->detours[i];
        uint32_t distance = b->e.at - (detour->branch + 4);
        memcpy(detour->branch, &distance, 4);
        if (i == 0)
            builder_state(b, STATE_WITHIN, 0);
        if (detour->size && detour->size <= LARGEST)
            write_data_detour(&b->e, detour);
        else if (!detour->size)
            write_code_detour(&b->e, detour);
        hooks_emit_fast_call(&b->e, (tool_fast_function *)(void *)detour->function,
                             detour->argument);
        jump_back(&b->e, detour);
    }
    b->detour_count = 0;
}
