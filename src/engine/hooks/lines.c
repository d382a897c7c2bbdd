// Checks of cache lines: the usual case, the line that was used last, is dealt with in place.
//
// For each group of lines that share the low bits of their numbers, a thread remembers the one used
// last, as the address of its first byte. An access is within that line if address xor line is less
// than what is left of a line. Everything else goes out of line, behind the block.
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

enum { RECENT = 512 }; // lines remembered, per thread and cache

static _Thread_local uint64_t recent[TOOL_CACHES][RECENT] __attribute__((tls_model("local-exec")));

static struct {
    unsigned bits;
    uint64_t mask; // of the numbers of lines: which group
} caches[TOOL_CACHES];

void tool_set_lines(enum tool_cache cache, unsigned bits, uint64_t sets) {
    caches[cache].bits = bits;
    caches[cache].mask = (sets < RECENT ? sets : RECENT) - 1;
}

__attribute__((target("general-regs-only"))) void tool_used_line(enum tool_cache cache,
                                                                 uint64_t line) {
    recent[cache][line & caches[cache].mask] = line << caches[cache].bits;
}

void tool_forget_lines(void) {
    memset(recent, 0, sizeof recent);
}

// Where the lines of a cache are remembered, as a displacement from FS.
static int32_t displacement_of(enum tool_cache cache) {
    return (int32_t)((intptr_t)recent[cache] - ((intptr_t)self - task_displacement));
}

// rcx = the address of the access; rdx may be used as well.
static void emit_address_of(struct emitter *e, const struct tool_access *access) {
    if (access->base < 0 && access->index < 0) {
        emit_move_imm(e, RCX, access->displacement);
    } else {
        int base = access->base, index = access->index;
        emit8(e, (access->narrow ? 0x40 : 0x48) | (index >= 8 ? 2 : 0) | (base >= 8 ? 1 : 0));
        emit8(e, 0x8d); // lea rcx, [base + index*scale + displacement]
        emit8(e, (base >= 0 ? 0x8c : 0x0c));
        unsigned scale = access->scale == 8 ? 3 : access->scale == 4 ? 2 : access->scale == 2;
        emit8(e, scale << 6 | (index >= 0 ? (index & 7) << 3 : 0x20) | (base >= 0 ? base & 7 : 5));
        emit32(e, access->displacement);
    }
    if (access->segment) {
        emit_load_field(e, RDX, access->segment == SEGMENT_FS ? TASK_FS_BASE : TASK_GS_BASE);
        emit_add_address(e, RCX, RCX, RDX);
    }
}

static void emit_save_flags(struct emitter *e) {
    emit_spill(e, RAX);
    emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0}, 4); // lahf; seto al
}

static void emit_restore_flags(struct emitter *e) {
    emit_bytes(e, (uint8_t[]){0x04, 0x7f, 0x9e}, 3); // add al, 127; sahf
    emit_unspill(e, RAX);
}

// A way out of line, with the address in rcx; `branch` is the jump's rel32.
static void add_detour(struct builder *b, uint8_t *branch, tool_line_function *function,
                       uint32_t argument) {
    b->detours[b->detour_count++] = (struct detour){branch, b->e.at, function, argument};
}

void tool_insert_line_check(struct tool_block *block, const struct tool_access *access,
                            tool_line_function *function, uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct emitter *e = &b->e;
    unsigned bits = caches[TOOL_CACHE_DATA].bits;
    bool dead = builder_flags_are_dead(b);
    emit_spill(e, RCX);
    emit_spill(e, RDX);
    emit_address_of(e, access);
    if (!dead)
        emit_save_flags(e);
    emit_bytes(e, (uint8_t[]){0x89, 0xca, 0xc1, 0xea, bits - 3}, 5); // mov edx, ecx; shr edx, n
    emit_bytes(e, (uint8_t[]){0x81, 0xe2}, 2);                       // and edx, mask
    emit32(e, caches[TOOL_CACHE_DATA].mask << 3);
    emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x8b, 0x92}, 4); // mov rdx, fs:[rdx + lines]
    emit32(e, displacement_of(TOOL_CACHE_DATA));
    emit_bytes(e, (uint8_t[]){0x48, 0x31, 0xca, 0x48, 0x81, 0xfa}, 6); // xor rdx, rcx; cmp rdx, …
    emit32(e, access->size < 1u << bits ? (1u << bits) - access->size : 0);
    emit_bytes(e, (uint8_t[]){0x0f, 0x87}, 2); // ja
    emit32(e, 0);
    add_detour(b, e->at - 4, function, argument);
    if (!dead)
        emit_restore_flags(e);
    emit_unspill(e, RDX);
    emit_unspill(e, RCX);
}

void tool_insert_code_line_check(struct tool_block *block, uint64_t line,
                                 tool_line_function *function, uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct emitter *e = &b->e;
    uint64_t start = line << caches[TOOL_CACHE_CODE].bits;
    int32_t place =
        displacement_of(TOOL_CACHE_CODE) + (int32_t)((line & caches[TOOL_CACHE_CODE].mask) * 8);
    emit_spill(e, RCX);
    if (start <= INT32_MAX && builder_flags_are_dead(b)) {
        emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x81, 0x3c, 0x25}, 5); // cmp qword fs:[place], line
        emit32(e, place);
        emit32(e, start);
        emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
        emit32(e, 0);
        add_detour(b, e->at - 4, function, argument);
    } else if (start <= INT32_MAX) {
        emit_bytes(e, (uint8_t[]){0x64, 0x48, 0x8b, 0x0c, 0x25}, 5); // mov rcx, fs:[place]
        emit32(e, place);
        emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x89}, 3); // lea rcx, [rcx - line]
        emit32(e, -start);
        emit_bytes(e, (uint8_t[]){0xe3, 5}, 2); // jrcxz over the next
        emit8(e, 0xe9);
        emit32(e, 0);
        add_detour(b, e->at - 4, function, argument);
    } else {
        emit8(e, 0xe9); // code high up is rare
        emit32(e, 0);
        add_detour(b, e->at - 4, function, argument);
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

void hooks_write_detours(struct builder *b) {
    for (unsigned i = 0; i < b->detour_count; i++) {
        const struct detour *detour = &b->detours[i];
        uint32_t distance = b->e.at - (detour->branch + 4);
        memcpy(detour->branch, &distance, 4);
        if (i == 0)
            builder_state(b, STATE_WITHIN, 0);
        hooks_emit_fast_call(&b->e, (tool_fast_function *)(void *)detour->function,
                             detour->argument);
        emit_jump(&b->e, (uint64_t)detour->back);
    }
    b->detour_count = 0;
}
