#include "engine/cache/gates.h"

#include <string.h>

#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/enter.h"
#include "engine/task.h"

uint64_t cache_gate_link, cache_gate_high_lookup, cache_gate_version_lookup;
static uint64_t gates_end;

static void write_leave(struct assembler *a, unsigned reason) {
    enum { JUMP_SIZE = 6 };
    asm_store_field_imm(a, TASK_EXIT_REASON, reason);
    while ((asm_address(a) + JUMP_SIZE) % 8) // the target may check alignment
        asm_nops(a, 1);
    asm_jmp_mem(a, asm_rip(asm_address(a) + JUMP_SIZE));
    asm_word64(a, (uint64_t)cache_leave);
}

// rcx = the entry of the table for the destination in rdx.
static void write_table_load(struct assembler *a, const uint64_t *table) {
    asm_movzx_reg_reg(a, RCX, 16, RDX);
    asm_mov_reg_mem(a, 64, RCX, asm_indexed(ASM_NONE, RCX, 3, (int64_t)table));
}

// Goes on if the key of the destination in rdx is in its place.
static void write_compare_key(struct assembler *a, const uint64_t *keys) {
    write_table_load(a, keys);
    asm_lea_sum(a, RCX, RCX, RDX);
    struct asm_jump same = asm_jrcxz(a);
    asm_unspill(a, RDX);
    asm_jmp(a, cache_start);
    asm_land(a, same);
}

// Looks self->jump_target up in a table. rcx is spilled; flags are live. If an offset is to be
// added to the destination, rcx holds it.
static void write_far_lookup(struct assembler *a, const struct far_table *table, bool offset) {
    asm_spill(a, RDX);
    asm_load_field(a, RDX, TASK_JUMP_TARGET);
    if (offset)
        asm_lea_sum(a, RDX, RDX, RCX);
    write_compare_key(a, table->keys);
    write_table_load(a, table->codes);
    asm_store_field(a, RCX, TASK_ENTRY);
    write_compare_key(a, table->keys); // still: the code belongs to it
    asm_unspill(a, RDX);
    asm_jmp_mem(a, asm_task(TASK_ENTRY));
}

// A signal that came while a function called from the cache ran has found no place to stop: if
// something is pending, the thread steps on from here to the next clean point.
void cache_write_step_if_pending(struct assembler *a) {
    asm_push_reg(a, RCX);
    asm_load_field32(a, RCX, TASK_PENDING);
    struct asm_jump nothing = asm_jrcxz(a);
    asm_mov_mem_imm(a, 8, asm_task(TASK_STEPPING), 1);
    asm_pushf(a);
    asm_or_mem_imm(a, 64, asm_at(RSP, 0), FLAG_TRAP);
    asm_popf(a);
    asm_land(a, nothing);
    asm_pop_reg(a, RCX);
}

// The caller has spilled rsp and rdi and is on the engine's stack. Flags are kept on the stack.
static void write_gate_to(struct assembler *a, void (*function)(uint32_t, uint64_t, void *)) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, R8, R9, R10, R11};
    for (unsigned i = 0; i < sizeof kept; i++)
        asm_push_reg(a, kept[i]);
    asm_save_flags(a);
    asm_push_reg(a, RAX);
    asm_sub_reg_imm(a, 64, RSP, 8);
    asm_load_field(a, RSI, TASK_SPILL + 8 * RSP);
    asm_load_field(a, RDX, TASK_TOOL);
    asm_call_function(a, (uint64_t)function);
    asm_add_reg_imm(a, 64, RSP, 8);
    asm_pop_reg(a, RAX);
    asm_restore_flags(a);
    for (unsigned i = sizeof kept; i-- > 0;)
        asm_pop_reg(a, kept[i]);
    cache_write_step_if_pending(a);
    asm_ret(a);
}

struct assembler cache_gate_begin(void) {
    return (struct assembler){.at = (uint8_t *)gates_end};
}

void cache_gate_end(const struct assembler *a) {
    gates_end = asm_address(a);
    if (gates_end > cache_start + CACHE_GATES_SIZE)
        fatal("internal error: too many gates");
}

static void write_store_all(struct assembler *a) {
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (reg != RDI && reg != RSP)
            asm_store_field(a, reg, TASK_GPR + 8 * reg);
}

// gpr = the value that was spilled, by way of rax.
static void write_store_spilled(struct assembler *a, unsigned reg) {
    asm_load_field(a, RAX, TASK_SPILL + 8 * reg);
    asm_store_field(a, RAX, TASK_GPR + 8 * reg);
}

// As write_gate_to, with all registers saved where C code finds them and the direction flag clear.
static void write_gate_saved(struct assembler *a, void (*function)(void *)) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, R8, R9, R10, R11};
    write_store_all(a);
    write_store_spilled(a, RDI);
    write_store_spilled(a, RSP);
    asm_save_flags(a);
    asm_push_reg(a, RAX);
    asm_push_reg(a, RAX); // twice: alignment
    asm_pushf(a);
    asm_pop_reg(a, RAX);
    asm_store_field(a, RAX, TASK_FLAGS);
    asm_cld(a);
    asm_call_function(a, (uint64_t)function);
    asm_test_mem_imm(a, 32, asm_task(TASK_FLAGS), FLAG_DIRECTION);
    struct asm_jump clear = asm_jcc_short(a, ASM_EQUAL);
    asm_std(a);
    asm_land(a, clear);
    asm_pop_reg(a, RAX);
    asm_pop_reg(a, RAX);
    asm_restore_flags(a);
    for (unsigned i = 0; i < sizeof kept; i++)
        asm_load_field(a, kept[i], TASK_GPR + 8 * kept[i]);
    cache_write_step_if_pending(a);
    asm_ret(a);
}

enum { GATES = 64 };
static struct {
    const void *function;
    enum gate_kind kind;
    uint64_t gate;
} known[GATES];

uint64_t *cache_gate_of(const void *function, enum gate_kind kind) {
    unsigned i = 0;
    while (i < GATES && known[i].function &&
           (known[i].function != function || known[i].kind != kind))
        i++;
    if (i == GATES)
        fatal("internal error: too many functions are called from translated code");
    known[i].function = function;
    known[i].kind = kind;
    return &known[i].gate;
}

uint64_t cache_gate_saved(void (*function)(void *)) {
    uint64_t *gate = cache_gate_of(function, GATE_SAVED);
    if (!*gate) {
        struct assembler a = cache_gate_begin();
        *gate = asm_address(&a);
        write_gate_saved(&a, function);
        cache_gate_end(&a);
    }
    return *gate;
}

uint64_t cache_gate_to(void (*function)(uint32_t, uint64_t, void *)) {
    uint64_t *gate = cache_gate_of(function, GATE_FAST);
    if (!*gate) {
        struct assembler a = cache_gate_begin();
        *gate = asm_address(&a);
        write_gate_to(&a, function);
        cache_gate_end(&a);
    }
    return *gate;
}

// A call that a fault ends as call_guarded is ended: with 0 in rax, and on its return.
static void write_guarded_call(struct assembler *a, uint64_t function) {
    static const uint8_t kept[] = {RBX, RBP, R12, R13, R14, R15};
    for (unsigned i = 0; i < sizeof kept; i++)
        asm_push_reg(a, kept[i]);
    asm_push_mem(a, asm_task(TASK_GUARD));
    asm_store_field(a, RSP, TASK_GUARD);
    asm_call_function(a, function);
    asm_pop_mem(a, asm_task(TASK_GUARD));
    asm_add_reg_imm(a, 64, RSP, 8 * sizeof kept);
    asm_ret(a);
}

// Returns where it begins.
static uint64_t write_gate_try(struct assembler *a, uint64_t function) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11};
    uint64_t guarded = asm_address(a);
    write_guarded_call(a, function);
    uint64_t gate = asm_address(a);
    write_store_all(a);
    asm_store_field(a, RDI, TASK_GPR + 8 * RDI);
    write_store_spilled(a, RSP);
    asm_load_field(a, RCX, TASK_TOOL);
    asm_call(a, guarded);
    asm_test_reg_reg(a, 32, RAX, RAX);
    struct asm_jump not_done = asm_jcc_short(a, ASM_EQUAL);
    asm_store_field(a, RDX, TASK_GPR + 8 * RAX);
    asm_land(a, not_done);
    for (unsigned i = 0; i < sizeof kept; i++)
        asm_load_field(a, kept[i], TASK_GPR + 8 * kept[i]);
    cache_write_step_if_pending(a);
    asm_ret(a);
    return gate;
}

uint64_t cache_gate_try(tool_quick_hook *hook) {
    uint64_t *gate = cache_gate_of(hook, GATE_TRY);
    if (!*gate) {
        struct assembler a = cache_gate_begin();
        *gate = write_gate_try(&a, (uint64_t)hook);
        cache_gate_end(&a);
    }
    return *gate;
}

void cache_write_gates(const struct far_table *high_code, const struct far_table *versions) {
    struct assembler a = {.at = (uint8_t *)cache_start};
    memset(known, 0, sizeof known);
    // Offset 0 in the jump table is this place: the destination is not in the table.
    asm_unspill(&a, RCX);
    write_leave(&a, EXIT_INDIRECT);
    cache_gate_link = asm_address(&a);
    write_leave(&a, EXIT_LINK);
    cache_gate_high_lookup = asm_address(&a);
    write_far_lookup(&a, high_code, false);
    cache_gate_version_lookup = asm_address(&a);
    write_far_lookup(&a, versions, true);
    cache_gate_end(&a);
}
