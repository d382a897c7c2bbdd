#include "engine/cache/gates.h"

#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/run/enter.h"
#include "engine/task.h"

uint64_t cache_gate_link, cache_gate_high_lookup, cache_gate_version_lookup, cache_gate_follow,
    cache_gate_replace, cache_gate_hidden;
static uint64_t gates_end;

static void emit_leave(struct emitter *e, unsigned reason) {
    emit_store_field_imm(e, TASK_EXIT_REASON, reason);
    while ((emit_address(e) + 6) % 8) // the target may check alignment
        emit8(e, 0x90);
    emit_bytes(e, (uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6); // jmp [rip]
    emit64(e, (uint64_t)cache_leave);
}

// Goes on if the key of the destination in rdx is in its place.
static void emit_compare_key(struct emitter *e, const uint64_t *keys) {
    emit_bytes(e, (uint8_t[]){0x0f, 0xb7, 0xca}, 3);       // movzx ecx, dx
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0c, 0xcd}, 4); // mov rcx, [rcx*8 + keys]
    emit32(e, (uint64_t)keys);
    emit_add_address(e, RCX, RCX, RDX);
    emit_bytes(e, (uint8_t[]){0xe3, 14}, 2); // jrcxz over the next two
    emit_unspill(e, RDX);
    emit_jump(e, CACHE_START);
}

// Looks self->jump_target up in a table. rcx is spilled; flags are live. If an offset is to be
// added to the destination, rcx holds it.
static void emit_far_lookup(struct emitter *e, const struct far_table *table, bool offset) {
    emit_spill(e, RDX);
    emit_load_field(e, RDX, TASK_JUMP_TARGET);
    if (offset)
        emit_add_address(e, RDX, RDX, RCX);
    emit_compare_key(e, table->keys);
    emit_bytes(e, (uint8_t[]){0x0f, 0xb7, 0xca}, 3);       // movzx ecx, dx
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0c, 0xcd}, 4); // mov rcx, [rcx*8 + codes]
    emit32(e, (uint64_t)table->codes);
    emit_store_field(e, RCX, TASK_ENTRY);
    emit_compare_key(e, table->keys); // still: the code belongs to it
    emit_unspill(e, RDX);
    emit_bytes(e, (uint8_t[]){0x64, 0xff}, 2); // jmp fs:[entry]
    emit_task_operand(e, 4, TASK_ENTRY);
}

// A signal that came while a function called from the cache ran has found no place to stop: if
// something is pending, the thread steps on from here to the next clean point.
void cache_emit_step_if_pending(struct emitter *e) {
    static const uint8_t trap[] = {0x9c,                                     // pushfq
                                   0x48, 0x81, 0x0c, 0x24, 0x00, 0x01, 0, 0, // or [rsp], TF
                                   0x9d};                                    // popfq
    emit8(e, 0x51);                                                          // push rcx
    emit_load_field32(e, RCX, TASK_PENDING);
    emit_bytes(e, (uint8_t[]){0xe3, 9 + sizeof trap}, 2); // jrcxz over the next
    emit_bytes(e, (uint8_t[]){0x64, 0xc6}, 2);            // mov byte fs:[stepping], 1
    emit_task_operand(e, 0, TASK_STEPPING);
    emit8(e, 1);
    emit_bytes(e, trap, sizeof trap);
    emit8(e, 0x59); // pop rcx
}

// The caller has spilled rsp and rdi and is on the engine's stack. Flags are kept in ah and al.
static void emit_gate_to(struct emitter *e, void (*function)(uint32_t, uint64_t, void *)) {
    static const uint8_t save[] = {0x50, 0x51, 0x52, 0x56,                // push rax, rcx, rdx, rsi
                                   0x41, 0x50, 0x41, 0x51, 0x41, 0x52,    // push r8, r9, r10
                                   0x41, 0x53,                            // push r11
                                   0x9f, 0x0f, 0x90, 0xc0,                // lahf; seto al
                                   0x50, 0x48, 0x83, 0xec, 0x08};         // push rax; sub rsp, 8
    static const uint8_t restore[] = {0x48, 0x83, 0xc4, 0x08, 0x58,       // add rsp, 8; pop rax
                                      0x04, 0x7f, 0x9e,                   // add al, 127; sahf
                                      0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, // pop r11, r10, r9
                                      0x41, 0x58, 0x5e, 0x5a, 0x59, 0x58}; // r8, rsi, rdx, rcx, rax
    emit_bytes(e, save, sizeof save);
    emit_load_field(e, RSI, TASK_SPILL + 8 * RSP);
    emit_load_field(e, RDX, TASK_TOOL);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2); // mov rax, function
    emit64(e, (uint64_t)function);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0}, 2); // call rax
    emit_bytes(e, restore, sizeof restore);
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
}

struct emitter cache_gate_begin(void) {
    return (struct emitter){(uint8_t *)gates_end};
}

void cache_gate_end(const struct emitter *e) {
    gates_end = emit_address(e);
    if (gates_end > CACHE_START + CACHE_GATES_SIZE)
        fatal("internal error: too many gates");
}

static void emit_store_all(struct emitter *e) {
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (reg != RDI && reg != RSP)
            emit_store_field(e, reg, TASK_GPR + 8 * reg);
}

// As emit_gate_to, with all registers saved where C code finds them and the direction flag clear.
static void emit_follow(struct emitter *e, void (*function)(void *)) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, R8, R9, R10, R11};
    emit_store_all(e);
    emit_load_field(e, RAX, TASK_SPILL + 8 * RDI);
    emit_store_field(e, RAX, TASK_GPR + 8 * RDI);
    emit_load_field(e, RAX, TASK_SPILL + 8 * RSP);
    emit_store_field(e, RAX, TASK_GPR + 8 * RSP);
    // lahf; seto al; push rax, twice; pushfq; pop rax; mov [flags], rax; cld
    emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0, 0x50, 0x50, 0x9c, 0x58}, 8);
    emit_store_field(e, RAX, TASK_FLAGS);
    emit8(e, 0xfc);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2); // mov rax, function
    emit64(e, (uint64_t)function);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0}, 2); // call rax
    emit_bytes(e, (uint8_t[]){0x64, 0xf7}, 2); // test dword fs:[flags], direction
    emit_task_operand(e, 0, TASK_FLAGS);
    emit32(e, 0x400);
    emit_bytes(e, (uint8_t[]){0x74, 1, 0xfd}, 3); // je over; std
    emit_bytes(e, (uint8_t[]){0x58, 0x58, 0x04, 0x7f, 0x9e},
               5); // pop rax, twice; add al, 127; sahf
    for (unsigned i = 0; i < sizeof kept; i++)
        emit_load_field(e, kept[i], TASK_GPR + 8 * kept[i]);
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
}

void cache_set_followers(void (*follow)(void *), void (*replace)(void *), void (*hidden)(void *)) {
    struct emitter e = cache_gate_begin();
    cache_gate_follow = emit_address(&e);
    emit_follow(&e, follow);
    cache_gate_replace = emit_address(&e);
    emit_follow(&e, replace);
    cache_gate_hidden = emit_address(&e);
    emit_follow(&e, hidden);
    cache_gate_end(&e);
}

uint64_t *cache_gate_of(const void *function, enum gate_kind kind) {
    enum { GATES = 64 };
    static struct {
        const void *function;
        enum gate_kind kind;
        uint64_t gate;
    } known[GATES];
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

uint64_t cache_gate_to(void (*function)(uint32_t, uint64_t, void *)) {
    uint64_t *gate = cache_gate_of(function, GATE_FAST);
    if (!*gate) {
        struct emitter e = cache_gate_begin();
        *gate = emit_address(&e);
        emit_gate_to(&e, function);
        cache_gate_end(&e);
    }
    return *gate;
}

// A call that a fault ends as call_guarded is ended: with 0 in rax, and on its return.
static void emit_guarded_call(struct emitter *e, uint64_t function) {
    static const uint8_t save[] = {0x53, 0x55, 0x41, 0x54, 0x41, 0x55,  // push rbx, rbp, r12, r13
                                   0x41, 0x56, 0x41, 0x57, 0x64, 0xff}; // r14, r15, fs:[guard]
    emit_bytes(e, save, sizeof save);
    emit_task_operand(e, 6, TASK_GUARD);
    emit_store_field(e, RSP, TASK_GUARD);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2); // mov rax, function
    emit64(e, function);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0, 0x64, 0x8f}, 4); // call rax; pop fs:[guard]
    emit_task_operand(e, 0, TASK_GUARD);
    emit_bytes(e, (uint8_t[]){0x48, 0x83, 0xc4, 48, 0xc3}, 5); // add rsp, 48; ret
}

// Returns where it begins.
static uint64_t emit_gate_try(struct emitter *e, uint64_t function) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11};
    uint64_t guarded = emit_address(e);
    emit_guarded_call(e, function);
    uint64_t gate = emit_address(e);
    emit_store_all(e);
    emit_store_field(e, RDI, TASK_GPR + 8 * RDI);
    emit_load_field(e, RAX, TASK_SPILL + 8 * RSP);
    emit_store_field(e, RAX, TASK_GPR + 8 * RSP);
    emit_load_field(e, RCX, TASK_TOOL);
    emit8(e, 0xe8); // call
    emit32(e, guarded - (emit_address(e) + 4));
    emit_bytes(e, (uint8_t[]){0x85, 0xc0, 0x74, 9}, 4); // test eax, eax; je over the next
    emit_store_field(e, RDX, TASK_GPR + 8 * RAX);
    for (unsigned i = 0; i < sizeof kept; i++)
        emit_load_field(e, kept[i], TASK_GPR + 8 * kept[i]);
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
    return gate;
}

uint64_t cache_gate_try(tool_quick_hook *hook) {
    uint64_t *gate = cache_gate_of(hook, GATE_TRY);
    if (!*gate) {
        struct emitter e = cache_gate_begin();
        *gate = emit_gate_try(&e, (uint64_t)hook);
        cache_gate_end(&e);
    }
    return *gate;
}

void cache_write_gates(const struct far_table *high_code, const struct far_table *versions) {
    struct emitter e = {(uint8_t *)CACHE_START};
    // Offset 0 in the jump table is this place: the destination is not in the table.
    emit_unspill(&e, RCX);
    emit_leave(&e, EXIT_INDIRECT);
    cache_gate_link = emit_address(&e);
    emit_leave(&e, EXIT_LINK);
    cache_gate_high_lookup = emit_address(&e);
    emit_far_lookup(&e, high_code, false);
    cache_gate_version_lookup = emit_address(&e);
    emit_far_lookup(&e, versions, true);
    cache_gate_end(&e);
}
