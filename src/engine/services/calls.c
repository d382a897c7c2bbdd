// Calls of the tool from translated code, on the engine's stack, without leaving the cache.
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

static void write_call(struct assembler *a, uint64_t gate, uint32_t argument) {
    asm_begin_gate_call(a);
    asm_mov_reg_imm(a, RDI, argument);
    asm_gate_call(a, gate);
}

// The condition is the one of the branch at hand. loop and jrcxz have none: they never lead to
// another function.
static void insert_branch_call(struct builder *b, bool if_taken, uint64_t gate, uint32_t argument) {
    enum { JCC_SHORT = 0x70 };
    const ZydisDecodedInstruction *z = &b->rest->z;
    if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (z->opcode & 0xf0) != JCC_SHORT)
        return;
    struct asm_jump over = asm_jcc_short(&b->code, (z->opcode & 15) ^ if_taken);
    write_call(&b->code, gate, argument);
    asm_land(&b->code, over);
}

static void insert_word_call(struct assembler *a, uint64_t gate, uint32_t argument) {
    asm_spill(a, RCX);
    asm_load_field32(a, RCX, insert_word(1));
    struct asm_jump over = asm_jrcxz(a);
    asm_unspill(a, RCX);
    write_call(a, gate, argument);
    asm_land(a, over);
    asm_unspill(a, RCX);
}

static void insert_call(struct builder *b, enum tool_condition condition, uint64_t gate,
                        uint32_t argument) {
    if (condition == TOOL_ALWAYS)
        write_call(&b->code, gate, argument);
    else if (condition == TOOL_IF_TAKEN || condition == TOOL_IF_NOT_TAKEN)
        insert_branch_call(b, condition == TOOL_IF_TAKEN, gate, argument);
    else
        insert_word_call(&b->code, gate, argument);
}

void tool_insert_fast_call(struct tool_block *block, enum tool_condition condition,
                           tool_fast_function *function, uint32_t argument) {
    insert_call((struct builder *)block, condition, cache_gate_to(function), argument);
}

void tool_insert_target_call(struct tool_block *block, tool_address_function *function,
                             uint32_t argument) {
    struct builder *b = (struct builder *)block;
    struct insn *insn = (struct insn *)b->rest;
    insn_operands(insn);
    asm_spill(&b->code, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    translate_load_operand(b, insn, &insn->operands[0]);
    write_call(&b->code, cache_gate_to((tool_fast_function *)(void *)function), argument);
    asm_unspill(&b->code, RCX);
    builder_state(b, STATE_WITHIN, 0);
}

// ---- quick calls -------------------------------------------------------------------------------

static void write_restore(struct assembler *a, bool flags) {
    if (flags) {
        asm_pop_reg(a, RAX);
        asm_restore_flags(a);
    }
    asm_pop_reg(a, RAX);
}

// Called with rsp and rdi spilled, on the engine's stack.
static uint64_t make_quick_gate(tool_quick_function *quick, tool_fast_function *function,
                                bool flags) {
    uint64_t slow = cache_gate_to(function);
    struct assembler start = cache_gate_begin(), *a = &start;
    uint64_t gate = asm_address(a);
    asm_push_reg(a, RAX);
    if (flags) {
        asm_save_flags(a);
        asm_push_reg(a, RAX);
    }
    asm_call_function(a, (uint64_t)quick);
    asm_test_reg_reg(a, 8, RAX, RAX);
    struct asm_jump not_done = asm_jcc_short(a, ASM_EQUAL);
    write_restore(a, flags);
    if (!flags) {
        asm_cmp_mem_imm(a, 32, asm_task(TASK_PENDING), 0);
        struct asm_jump pending = asm_jcc_short(a, ASM_NOT_EQUAL);
        asm_ret(a);
        asm_land(a, pending);
    }
    cache_write_step_if_pending(a);
    asm_ret(a);
    asm_land(a, not_done);
    write_restore(a, flags);
    asm_jmp(a, slow);
    cache_gate_end(a);
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

// ---- other insertions --------------------------------------------------------------------------

void tool_lock_code(void) {
    cache_lock();
}

void tool_unlock_code(void) {
    cache_unlock();
}

void *tool_allocate(size_t size) {
    return block_memory(size);
}

void tool_insert_call(struct tool_block *block, tool_function *fn, void *argument) {
    builder_call((struct builder *)block, fn, argument);
}
