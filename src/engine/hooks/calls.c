// Calls of the tool from translated code, on the engine's stack, without leaving the cache.
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

static void emit_call(struct emitter *e, uint64_t gate, uint32_t argument) {
    emit_spill(e, RSP);
    emit_spill(e, RDI);
    emit_move_imm(e, RDI, argument);
    emit_load_field(e, RSP, TASK_HOST_RSP);
    emit8(e, 0xe8); // call rel32
    emit32(e, gate - (emit_address(e) + 4));
    emit_unspill(e, RDI);
    emit_unspill(e, RSP);
}

void hooks_emit_fast_call(struct emitter *e, tool_fast_function *function, uint32_t argument) {
    emit_call(e, cache_gate_to(function), argument);
}

static void insert_call(struct builder *b, enum tool_condition condition, uint64_t gate,
                        uint32_t argument) {
    struct emitter *e = &b->e;
    if (condition == TOOL_ALWAYS) {
        emit_call(e, gate, argument);
        return;
    }
    uint8_t *over;
    if (condition == TOOL_IF_TAKEN || condition == TOOL_IF_NOT_TAKEN) {
        const ZydisDecodedInstruction *z = &b->rest->z;
        if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (z->opcode & 0xf0) != 0x70)
            return; // loop, jrcxz: never between functions
        emit8(e, 0x70 | ((z->opcode & 15) ^ (condition == TOOL_IF_TAKEN)));
        over = e->at;
        emit8(e, 0);
        emit_call(e, gate, argument);
    } else {
        emit_spill(e, RCX);
        emit_load_field32(e, RCX, hooks_word_field(1));
        emit8(e, 0xe3); // jrcxz
        over = e->at;
        emit8(e, 0);
        emit_unspill(e, RCX);
        emit_call(e, gate, argument);
        over[0] = e->at - (over + 1);
        emit_unspill(e, RCX);
        return;
    }
    over[0] = e->at - (over + 1);
}

void tool_insert_fast_call(struct tool_block *block, enum tool_condition condition,
                           tool_fast_function *function, uint32_t argument) {
    insert_call((struct builder *)block, condition, cache_gate_to(function), argument);
}

// ---- quick calls -------------------------------------------------------------------------------

static void emit_restore(struct emitter *e, bool flags) {
    if (flags)
        emit_bytes(e, (uint8_t[]){0x58, 0x04, 0x7f, 0x9e}, 4); // pop rax; add al, 127; sahf
    emit8(e, 0x58);                                            // pop rax
}

// Called with rsp and rdi spilled, on the engine's stack.
static uint64_t make_quick_gate(tool_quick_function *quick, tool_fast_function *function,
                                bool flags) {
    uint64_t slow = cache_gate_to(function);
    struct emitter start = cache_gate_begin(), *e = &start;
    uint64_t gate = emit_address(e);
    emit8(e, 0x50); // push rax
    if (flags)
        emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0, 0x50}, 5); // lahf; seto al; push rax
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2);                       // mov rax, quick
    emit64(e, (uint64_t)quick);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0, 0x84, 0xc0, 0x74, 0}, 6); // call rax; test al, al; je
    uint8_t *over = e->at;
    emit_restore(e, flags);
    if (!flags) {
        emit_bytes(e, (uint8_t[]){0x64, 0x83}, 2); // cmp dword fs:[pending], 0
        emit_task_operand(e, 7, TASK_PENDING);
        emit_bytes(e, (uint8_t[]){0, 0x75, 1, 0xc3}, 4); // jne over the next; ret
    }
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
    over[-1] = e->at - over;
    emit_restore(e, flags);
    emit_jump(e, slow);
    cache_gate_end(e);
    return gate;
}

void tool_insert_quick_call(struct tool_block *block, enum tool_condition condition,
                            tool_quick_function *quick, tool_fast_function *function,
                            uint32_t argument) {
    struct builder *b = (struct builder *)block;
    bool flags = condition != TOOL_ALWAYS || !builder_flags_are_dead(b);
    uint64_t *gate = cache_gate_of(quick, flags ? GATE_QUICK_KEEPS_FLAGS : GATE_QUICK);
    if (!*gate)
        *gate = make_quick_gate(quick, function, flags);
    insert_call(b, condition, *gate, argument);
}
