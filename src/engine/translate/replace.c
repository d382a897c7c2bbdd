// Functions that a tool replaces (TOOL_REPLACE), for tools whose hooks leave vector registers alone
// (plain_hooks): the block calls the hook without leaving the cache.
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

__attribute__((target("general-regs-only"))) static void run_replacement(void *argument) {
    const struct hooked_function *hooked = argument;
    self->pc = hooked->shown;
    hooked->function(hooked->argument);
    TOOL_HOOK(register_set, RAX);
    self->raised = self->fault.number != 0 || self->unreplaced;
}

// Writes the call of what is tried first. The jump is taken if it was done; no distance: there is
// nothing to try.
static struct asm_jump write_try(struct builder *b, const struct hooked_function *hooked) {
    struct assembler *a = &b->code;
    tool_quick_hook *hook =
        tool->quick_hook ? tool->quick_hook((void (*)(void))hooked->argument) : NULL;
    if (!hook)
        return (struct asm_jump){0};
    asm_store_field_imm(a, TASK_PC, hooked->shown);
    asm_store_field_imm(a, TASK_PC + 4, hooked->shown >> 32);
    asm_spill(a, RSP);
    builder_state(b, STATE_WITHIN, 1u << RSP);
    asm_load_field(a, RSP, TASK_HOST_RSP);
    asm_call(a, cache_gate_try(hook));
    asm_unspill(a, RSP);
    builder_state(b, STATE_WITHIN, 0);
    asm_spill(a, RCX); // as the way back wants it
    return asm_jcc_forward(a, ASM_NOT_EQUAL);
}

void translate_replaced(struct builder *b, const struct hooked_function *hooked) {
    struct assembler *a = &b->code;
    builder_state(b, STATE_CLEAN, 0);
    struct asm_jump done = write_try(b, hooked);
    builder_saved_call(b, run_replacement, (void *)hooked);
    struct asm_jump returns = builder_jump_if_zero(b, 32, TASK_RAISED);
    asm_unspill(a, RCX);
    builder_exit_inline(b, EXIT_RAISED, b->start);
    asm_land(a, returns);
    if (done.distance)
        asm_land(a, done);
    TOOL_HOOK(replaced, (struct tool_block *)b);
    translate_return_from(b, b->start, 0);
}
