// Accesses to heap blocks: whether it is one, in place; which block, and counting, behind the block
// of code. The maps and notes (tool.h) are reached through GS.
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

enum { HEAP_BITS = 40, HALF_BIT = 39, LARGEST = 64, COUNTS_MOST = 4 };

_Static_assert(TOOL_HEAP_END - TOOL_HEAP_START == 1ul << HEAP_BITS, "");
_Static_assert(TOOL_HEAP_START % (1ul << HEAP_BITS) == 0, "");
_Static_assert(TOOL_HEAP_LARGE == TOOL_HEAP_START + (1ul << HALF_BIT), "");

static _Thread_local uint8_t kept_vector[16] __attribute__((tls_model("local-exec")));

static int32_t displacement_of_kept(void) {
    return (int32_t)((intptr_t)kept_vector - ((intptr_t)self - task_displacement));
}

void tool_insert_heap_access(struct tool_block *block, const struct tool_access *access,
                             unsigned reads, unsigned writes, tool_line_function *beyond) {
    struct builder *b = (struct builder *)block;
    struct emitter *e = &b->e;
    bool dead = builder_flags_are_dead(b);
    // With nothing else to be kept, one register will do; the address is computed anew.
    bool has_address = !dead || access->segment;
    emit_spill(e, RCX);
    if (has_address)
        emit_spill(e, RDX);
    hooks_emit_address(e, access);
    if (!dead)
        hooks_emit_save_flags(e);
    if (has_address)
        emit_bytes(e, (uint8_t[]){0x48, 0x89, 0xca, 0x48, 0xc1, 0xea, HEAP_BITS, 0x83, 0xfa}, 9);
    else
        emit_bytes(e, (uint8_t[]){0x48, 0xc1, 0xe9, HEAP_BITS, 0x83, 0xf9}, 6);
    emit8(e, TOOL_HEAP_START >> HEAP_BITS);    // shr, cmp
    emit_bytes(e, (uint8_t[]){0x0f, 0x84}, 2); // je
    emit32(e, 0);
    b->heap_detours[b->heap_detour_count++] = (struct heap_detour){.branch = e->at - 4,
                                                                   .back = e->at,
                                                                   .access = *access,
                                                                   .reads = reads,
                                                                   .writes = writes,
                                                                   .has_address = has_address,
                                                                   .beyond = beyond};
    if (!dead)
        hooks_emit_restore_flags(e);
    if (has_address)
        emit_unspill(e, RDX);
    emit_unspill(e, RCX);
}

// ---- counting ----------------------------------------------------------------------------------

// An instruction with the operand gs:[rdx*8 + field of the note]; reg is r8 or an opcode extension.
static void emit_note(struct emitter *e, uint8_t rex, uint8_t opcode, unsigned reg, size_t field) {
    emit_bytes(e, (uint8_t[]){0x65, rex, opcode, reg << 3 | 4, 0xd5}, 5);
    emit32(e, field);
}

static uint8_t *emit_jump_ahead(struct emitter *e, uint8_t condition) {
    emit_bytes(e, (uint8_t[]){0x0f, 0x80 | condition}, 2);
    emit32(e, 0);
    return e->at;
}

static void land_here(struct emitter *e, uint8_t *after_jump) {
    uint32_t distance = e->at - after_jump;
    memcpy(after_jump - 4, &distance, 4);
}

enum { NOT_BELOW = 3, EQUAL = 4, ABOVE = 7 };

// edx = the number of the note of the address in rcx
static void emit_find(struct emitter *e) {
    emit_bytes(e, (uint8_t[]){0x48, 0x89, 0xca}, 3);                      // mov rdx, rcx
    emit_bytes(e, (uint8_t[]){0x48, 0x0f, 0xba, 0xe1, HALF_BIT}, 5);      // bt rcx, 39
    emit_bytes(e, (uint8_t[]){0x72, 6, 0x48, 0xc1, 0xea, 4, 0xeb, 4}, 8); // jc; shr rdx, 4; jmp
    emit_bytes(e, (uint8_t[]){0x48, 0xc1, 0xea, 12}, 4);                  // shr rdx, 12
    emit_bytes(e, (uint8_t[]){0x65, 0x8b, 0x14, 0x95}, 4);                // mov edx, gs:[rdx*4]
    emit32(e, 0);
}

// Vectors of a small number in each lane, for saturating additions; made when first needed.
static uint64_t lanes_of(unsigned count) {
    static uint64_t places[COUNTS_MOST + 1];
    if (places[count])
        return places[count];
    struct emitter e = cache_gate_begin();
    while (emit_address(&e) & 15)
        emit8(&e, 0xcc);
    places[count] = emit_address(&e);
    for (unsigned i = 0; i < 8; i++)
        emit_bytes(&e, (uint16_t[]){count}, 2);
    cache_gate_end(&e);
    return places[count];
}

// Adds to the counters at r8, up to 8 of them, a power of two from 2 on.
static void emit_add_lanes(struct emitter *e, unsigned lanes, unsigned at, uint64_t amounts) {
    static const uint8_t loads[9][4] = {[2] = {0x66, 0x41, 0x0f, 0x6e},
                                        [4] = {0xf3, 0x41, 0x0f, 0x7e},
                                        [8] = {0xf3, 0x41, 0x0f, 0x6f}};
    static const uint8_t stores[9][4] = {[2] = {0x66, 0x41, 0x0f, 0x7e},
                                         [4] = {0x66, 0x41, 0x0f, 0xd6},
                                         [8] = {0xf3, 0x41, 0x0f, 0x7f}};
    emit_bytes(e, loads[lanes], 4); // xmm0, [r8 + at]
    emit_bytes(e, (uint8_t[]){0x40, at}, 2);
    emit_bytes(e, (uint8_t[]){0x66, 0x0f, 0xdd, 0x05}, 4); // paddusw xmm0, amounts
    emit32(e, amounts - (emit_address(e) + 4));
    emit_bytes(e, stores[lanes], 4);
    emit_bytes(e, (uint8_t[]){0x40, at}, 2);
}

static bool has_lanes(unsigned size) {
    return size == 6 || size == 10 || (size <= LARGEST && !(size & (size - 1)));
}

static void emit_count_bytes(struct emitter *e, unsigned size, unsigned count) {
    emit_bytes(e, (uint8_t[]){0x49, 0xb8}, 2); // mov r8, …
    emit64(e, TOOL_HEAP_COUNTERS - 2 * TOOL_HEAP_START);
    emit_bytes(e, (uint8_t[]){0x4d, 0x8d, 0x04, 0x48}, 4); // lea r8, [r8 + rcx*2]
    if (size == 1) {
        // movzx edx, word [r8]; add dx, count; sbb ecx, ecx; or edx, ecx; mov [r8], dx
        emit_bytes(e, (uint8_t[]){0x41, 0x0f, 0xb7, 0x10, 0x66, 0x83, 0xc2, count}, 8);
        emit_bytes(e, (uint8_t[]){0x19, 0xc9, 0x09, 0xca, 0x66, 0x41, 0x89, 0x10}, 8);
        return;
    }
    uint64_t amounts = lanes_of(count);
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0x11, 0x04, 0x25}, 5); // movups fs:[kept], xmm0
    emit32(e, displacement_of_kept());
    for (unsigned at = 0, lanes; at < size; at += lanes) {
        lanes = size - at >= 8 ? 8 : size - at >= 4 ? 4 : 2;
        emit_add_lanes(e, lanes, 2 * at, amounts);
    }
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0x10, 0x04, 0x25}, 5); // movups xmm0, fs:[kept]
    emit32(e, displacement_of_kept());
}

static void emit_add_note(struct emitter *e, size_t field, uint32_t amount) {
    if (!amount)
        return;
    emit_note(e, 0x48, 0x81, 0, field); // add qword gs:[…], amount
    emit32(e, amount);
}

static void write_detour(struct builder *b, const struct heap_detour *detour) {
    struct emitter *e = &b->e;
    static unsigned accesses;
    unsigned size = detour->access.size, lane = accesses++ % TOOL_HEAP_LANES;
    uint8_t *others = NULL;
    if (!detour->has_address) {
        emit_unspill(e, RCX);
        hooks_emit_address(e, &detour->access);
        emit_spill(e, RDX);
    }
    emit_spill(e, R8);
    emit_find(e);
    emit_bytes(e, (uint8_t[]){0x49, 0x89, 0xc8}, 3);                     // mov r8, rcx
    emit_note(e, 0x4c, 0x2b, 0, offsetof(struct tool_heap_note, start)); // sub r8, start
    emit_note(e, 0x4c, 0x3b, 0, offsetof(struct tool_heap_note, size));  // cmp r8, size
    uint8_t *outside = emit_jump_ahead(e, NOT_BELOW);
    emit_add_note(e, offsetof(struct tool_heap_note, reads[lane]), detour->reads * size);
    emit_add_note(e, offsetof(struct tool_heap_note, writes[lane]), detour->writes * size);
    emit_bytes(e, (uint8_t[]){0x49, 0x81, 0xc0}, 3); // add r8, access size
    emit32(e, size);
    emit_note(e, 0x4c, 0x3b, 0, offsetof(struct tool_heap_note, counted)); // cmp r8, counted
    uint8_t *beyond = emit_jump_ahead(e, ABOVE);
    if (has_lanes(size)) {
        emit_count_bytes(e, size, detour->reads + detour->writes);
        land_here(e, outside);
        outside = NULL;
        emit_unspill(e, R8);
        if (!detour->has_address)
            emit_unspill(e, RDX);
        emit_jump(e, (uint64_t)detour->back);
        land_here(e, beyond);
    } else {
        land_here(e, beyond);
    }
    emit_note(e, 0x48, 0x83, 7, offsetof(struct tool_heap_note, counted)); // cmp qword counted, 0
    emit8(e, 0);
    others = emit_jump_ahead(e, EQUAL);
    hooks_emit_fast_call(e, (tool_fast_function *)(void *)detour->beyond,
                         size | detour->reads << 16 | detour->writes << 24);
    land_here(e, others);
    if (outside)
        land_here(e, outside);
    emit_unspill(e, R8);
    if (!detour->has_address)
        emit_unspill(e, RDX);
    emit_jump(e, (uint64_t)detour->back);
}

void hooks_write_heap_detours(struct builder *b) {
    for (unsigned i = 0; i < b->heap_detour_count; i++) {
        if (i == 0)
            builder_state(b, STATE_WITHIN, 0);
        land_here(&b->e, b->heap_detours[i].branch + 4);
        write_detour(b, &b->heap_detours[i]);
    }
    b->heap_detour_count = 0;
}
