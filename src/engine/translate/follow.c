// Registers that may be undefined: versions of blocks, and instructions that are followed in C
// (cache/version.h, docs/memcheck.md).
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/translate/checks.h"

// ---- registers ---------------------------------------------------------------------------------

static unsigned unit_field(unsigned unit) {
    return TASK_TOOL_MEMORY + unit;
}

static void emit_define(struct emitter *e, uint64_t units) {
    for (; units; units &= units - 1) {
        emit_bytes(e, (uint8_t[]){0x64, 0xc6}, 2); // mov byte fs:[unit], 0
        emit_task_operand(e, 0, unit_field(__builtin_ctzl(units)));
        emit8(e, 0);
    }
}

// reg = the bytes of 8 units, or one of them; the others are 0, or in the set as well
static void emit_load_units(struct emitter *e, unsigned reg, unsigned group, uint8_t units) {
    if (units & (units - 1)) {
        emit_load_field(e, reg, unit_field(8 * group));
        return;
    }
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0xb6}, 3); // movzx reg, byte fs:[unit]
    emit_task_operand(e, reg, unit_field(8 * group + __builtin_ctz(units)));
}

// SSE moves into a whole register leave its upper parts as they are. They count as overwritten all
// the same: values that are undefined only there have come by AVX, which does not mix with SSE.
static bool is_whole_move(const struct insn *insn) {
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_PSHUFD:
        return true;
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD:
        return insn->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
    default:
        return false;
    }
}

static struct tool_units units_of(const struct insn *insn) {
    struct tool_units units = tool->units(&insn->z, insn->operands);
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    if (insn->z.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !is_whole_move(insn) ||
        to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->reg.value < ZYDIS_REGISTER_XMM0 ||
        to->reg.value > ZYDIS_REGISTER_XMM31)
        return units;
    uint64_t unit = 1ul << (TOOL_UNIT_VECTOR + (to->reg.value - ZYDIS_REGISTER_XMM0));
    units.kills |= unit;
    if (from->type != ZYDIS_OPERAND_TYPE_REGISTER || from->reg.value != to->reg.value)
        units.reads &= ~unit;
    return units;
}

// If all of these units are defined, over to the version of `target` for which the rest may not be.
// Bytes are 0 or 1, so that sums of them do not overflow.
void follow_if_defined(struct builder *b, uint64_t units, uint64_t target) {
    struct emitter *e = &b->e;
    unsigned groups = 0;
    for (unsigned group = 0; group < TOOL_UNITS / 8; group++)
        groups += (units >> 8 * group & 0xff) != 0;
    bool first = true, second = groups > 1;
    emit_spill(e, RCX);
    if (second)
        emit_spill(e, RDX);
    builder_state(b, STATE_WITHIN, 1u << RCX | (second ? 1u << RDX : 0));
    for (unsigned group = 0; group < TOOL_UNITS / 8; group++) {
        uint8_t some = units >> 8 * group;
        if (!some)
            continue;
        emit_load_units(e, first ? RCX : RDX, group, some);
        if (!first)
            emit_add_address(e, RCX, RCX, RDX);
        first = false;
    }
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    uint8_t *clear = e->at;
    emit_unspill(e, RCX);
    if (second)
        emit_unspill(e, RDX);
    emit_bytes(e, (uint8_t[]){0xeb, 0}, 2); // jmp
    uint8_t *over = e->at;
    clear[-1] = e->at - clear;
    emit_unspill(e, RCX);
    if (second)
        emit_unspill(e, RDX);
    uint64_t all = b->units;
    b->units &= ~units;
    emit_align_patch(e, 1);
    emit8(e, 0xe9);
    builder_exit_rel32(b, target);
    b->units = all;
    over[-1] = e->at - over;
}

// The argument is in rdi already.
void emit_gate_call(struct emitter *e, uint64_t gate) {
    emit_load_field(e, RSP, TASK_HOST_RSP);
    emit8(e, 0xe8); // call
    emit32(e, gate - (emit_address(e) + 4));
    emit_unspill(e, RDI);
    emit_unspill(e, RSP);
}

void emit_gate_begin(struct emitter *e) {
    emit_spill(e, RSP);
    emit_spill(e, RDI);
}

static bool touches_hidden(const ZydisDecodedOperand *operand) {
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
        return operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           ((operand->reg.value >= ZYDIS_REGISTER_XMM0 &&
             operand->reg.value <= ZYDIS_REGISTER_ZMM31) ||
            (operand->reg.value >= ZYDIS_REGISTER_K0 && operand->reg.value <= ZYDIS_REGISTER_K7) ||
            (operand->reg.value >= ZYDIS_REGISTER_ST0 && operand->reg.value <= ZYDIS_REGISTER_MM7));
}

static bool uses_hidden_units(struct insn *insn) {
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (touches_hidden(&insn->operands[i]))
            return true;
    switch (insn->z.meta.category) {
    case ZYDIS_CATEGORY_X87_ALU:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
    case ZYDIS_CATEGORY_MMX:
    case ZYDIS_CATEGORY_SSE:
        return true;
    default: // vzeroupper and its kin
        return insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX ||
               insn->z.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
    }
}

enum { CLEARED_AT_HEAD = 4, LOOKED_AT_SINGLY = 6 };

// What a block does to the units that are undefined at its head, whatever way it goes.
struct head_units {
    uint64_t overwritten; // before they are read
    uint64_t hidden;      // hidden ones that it touches in another way
};

static struct head_units head_units(const struct builder *b, unsigned count) {
    struct head_units head = {0};
    uint64_t read = 0;
    bool branched = false;
    for (unsigned i = 0; i < count; i++) {
        struct insn *insn = (struct insn *)&b->all[i];
        branched |= insn->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
                    insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
        insn_operands(insn);
        struct tool_units units = units_of(insn);
        uint64_t touched = (units.reads | units.writes | units.kills) & HIDDEN_UNITS;
        if (!touched && uses_hidden_units(insn))
            touched = HIDDEN_UNITS;
        if (!branched) {
            read |= (units.reads | (touched & ~units.kills)) & ~head.overwritten;
            uint64_t kills = units.kills & ~read;
            if (__builtin_popcountl((head.overwritten | kills) & HIDDEN_UNITS) > CLEARED_AT_HEAD)
                kills &= ~HIDDEN_UNITS;
            head.overwritten |= kills;
        }
        head.hidden |= touched & ~head.overwritten;
        read |= head.hidden;
    }
    return head;
}

// A block that touches hidden units.
struct hidden_site {
    uint64_t pc;
    unsigned version;
    uint64_t units;     // that matter to it
    struct block *last; // where it went on last
    uint64_t exit;      // code that leaves the block for the version that is not there yet
};

__attribute__((target("general-regs-only"))) static void run_hidden(void *argument) {
    struct hidden_site *site = argument;
    uint64_t units = version_hidden_units();
    self->entry = 0;
    self->any_hidden = units != 0;
    units &= site->units;
    if (!units)
        return;
    struct version from = version_get(site->version);
    units |= from.units;
    struct block *block = __atomic_load_n(&site->last, __ATOMIC_ACQUIRE);
    if (!block || block->dead || version_get(block->version).units != units) {
        unsigned version = version_find(units, from.forced);
        block = version == NO_VERSION ? NULL : block_find(site->pc, version);
        __atomic_store_n(&site->last, block, __ATOMIC_RELEASE);
    }
    self->entry = block ? CACHE_START + block->code + block->direct_entry : site->exit;
    if (!block) {
        self->wanted_units = units;
        self->forced = from.forced;
    }
}

// To the end of the code if the byte is not 0; rcx is spilled.
static uint8_t *emit_look(struct emitter *e, unsigned field) {
    emit_bytes(e, (uint8_t[]){0x64, 0x0f, 0xb6}, 3); // movzx ecx, byte fs:[field]
    emit_task_operand(e, RCX, field);
    emit_bytes(e, (uint8_t[]){0xe3, 5}, 2); // jrcxz past the jmp
    emit8(e, 0xe9);                         // jmp
    emit32(e, 0);
    return e->at;
}

// Over to another version, out of line, if some of the units are undefined.
static void emit_hidden_check(struct builder *b, uint64_t units) {
    struct emitter *e = &b->e;
    unsigned field = units & (units - 1) ? TASK_ANY_HIDDEN : unit_field(__builtin_ctzl(units));
    b->hidden = (struct hidden_check){.units = units};
    if (builder_flags_are_dead(b)) {
        emit_bytes(e, (uint8_t[]){0x64, 0x80}, 2); // cmp byte fs:[field], 0
        emit_task_operand(e, 7, field);
        emit8(e, 0);
        emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
        emit32(e, 0);
        b->hidden.jump = e->at;
    } else {
        b->hidden.spills = true;
        emit_spill(e, RCX);
        builder_state(b, STATE_WITHIN, 1u << RCX);
        b->hidden.jump = emit_look(e, field);
        emit_unspill(e, RCX);
    }
    b->hidden.back = e->at;
}

static void land(uint8_t *jump, const struct emitter *e) {
    uint32_t distance = e->at - jump;
    memcpy(jump - 4, &distance, 4);
}

// Calls C code through a gate and looks at a field of the thread that it has set; rcx is spilled.
// Returns the jump that is taken when the field is 0.
static uint8_t *call_and_look(struct builder *b, uint64_t gate, const void *argument,
                              void (*load)(struct emitter *, unsigned, unsigned), unsigned field) {
    struct emitter *e = &b->e;
    emit_gate_begin(e);
    builder_state(b, STATE_WITHIN, 1u << RDI | 1u << RSP);
    emit_move_imm(e, RDI, (uint64_t)argument);
    emit_gate_call(e, gate);
    emit_spill(e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    load(e, RCX, field);
    emit_bytes(e, (uint8_t[]){0xe3, 0}, 2); // jrcxz
    return e->at;
}

void follow_end(struct builder *b) {
    const struct hidden_check *check = &b->hidden;
    struct emitter *e = &b->e;
    if (!check->units)
        return;
    struct hidden_site *site = block_memory(sizeof *site);
    uint8_t *found[LOOKED_AT_SINGLY];
    unsigned looks = 0;
    b->pc = b->start;
    b->units = version_get(b->version).units;
    builder_state(b, STATE_WITHIN, check->spills ? 1u << RCX : 0);
    land(check->jump, e);
    if (!check->spills)
        emit_spill(e, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    if (__builtin_popcountl(check->units) <= LOOKED_AT_SINGLY) {
        for (uint64_t rest = check->units; rest; rest &= rest - 1)
            found[looks++] = emit_look(e, unit_field(__builtin_ctzl(rest)));
        emit_unspill(e, RCX);
        emit_jump(e, (uint64_t)check->back);
    }
    for (unsigned i = 0; i < looks; i++)
        land(found[i], e);
    emit_unspill(e, RCX);
    uint8_t *none = call_and_look(b, cache_gate_hidden, site, emit_load_field, TASK_ENTRY);
    emit_unspill(e, RCX);
    emit_bytes(e, (uint8_t[]){0x64, 0xff}, 2); // jmp fs:[entry]
    emit_task_operand(e, 4, TASK_ENTRY);
    *site = (struct hidden_site){
        .pc = b->start, .version = b->version, .units = check->units, .exit = emit_address(e)};
    builder_exit_inline(b, EXIT_HIDDEN, b->start);
    none[-1] = e->at - none;
    emit_unspill(e, RCX);
    emit_jump(e, (uint64_t)check->back);
}

void checks_head(struct builder *b, unsigned count) {
    struct head_units head = head_units(b, count);
    uint64_t dead = head.overwritten & b->units;
    builder_state(b, STATE_CLEAN, 0);
    if (!b->force && dead && !(b->units & HIDDEN_UNITS)) { // the version without them does
        emit_define(&b->e, dead);
        b->units &= ~dead;
        builder_jump_exit(b, b->start);
        return;
    }
    if (!b->force && b->units && !(b->units & HIDDEN_UNITS))
        follow_if_defined(b, b->units, b->start);
    emit_define(&b->e, head.overwritten & HIDDEN_UNITS & ~b->units);
    if (head.hidden & ~b->units)
        emit_hidden_check(b, head.hidden & ~b->units);
}

#define UNIT(number) (1ul << (number))

// Nobody hands flags over by a call or a return. Other registers that the convention leaves to the
// called function are not forgotten: compilers know what their own functions leave alone.
static const uint64_t dead_at_calls = UNIT(TOOL_UNIT_FLAGS);

// ---- following ---------------------------------------------------------------------------------

struct followed {
    uint64_t pc;
    void *prepared;
    uint64_t hidden; // units that it writes
};

__attribute__((target("general-regs-only"))) static void run_follower(void *argument) {
    const struct followed *followed = argument;
    self->pc = followed->pc;
    tool->follow(followed->prepared);
    for (uint64_t units = followed->hidden; units; units &= units - 1)
        if (self->tool_memory[__builtin_ctzl(units)])
            self->any_hidden = true;
}

__attribute__((target("general-regs-only"))) static void run_replacement(void *argument) {
    const struct hooked_function *hooked = argument;
    self->pc = hooked->shown;
    hooked->function(hooked->argument);
    if (tool->shadows)
        self->tool_memory[TOOL_UNIT_GENERAL + RAX] = 0;
    self->raised = self->fault.number != 0 || self->unreplaced;
}

void checks_init(void) {
    if (tool->shadows || tool->plain_hooks)
        cache_set_followers(run_follower, run_replacement, run_hidden);
    if (tool->shadows)
        cache_write_store_gates();
}

// Returns where the jump lands that is taken if it was done; NULL: there is nothing to try.
static uint8_t *emit_try(struct builder *b, const struct hooked_function *hooked) {
    struct emitter *e = &b->e;
    tool_quick_hook *hook =
        tool->quick_hook ? tool->quick_hook((void (*)(void))hooked->argument) : NULL;
    if (!hook)
        return NULL;
    emit_store_field_imm(e, TASK_PC, hooked->shown);
    emit_store_field_imm(e, TASK_PC + 4, hooked->shown >> 32);
    emit_spill(e, RSP);
    builder_state(b, STATE_WITHIN, 1u << RSP);
    emit_load_field(e, RSP, TASK_HOST_RSP);
    emit8(e, 0xe8); // call
    emit32(e, cache_gate_try(hook) - (emit_address(e) + 4));
    emit_unspill(e, RSP);
    builder_state(b, STATE_WITHIN, 0);
    emit_spill(e, RCX);                        // as the way back wants it
    emit_bytes(e, (uint8_t[]){0x0f, 0x85}, 2); // jne
    emit32(e, 0);
    return e->at;
}

void checks_replace(struct builder *b, const struct hooked_function *hooked) {
    struct emitter *e = &b->e;
    builder_state(b, STATE_CLEAN, 0);
    uint8_t *done = emit_try(b, hooked);
    uint8_t *over = call_and_look(b, cache_gate_replace, hooked, emit_load_field32, TASK_RAISED);
    emit_unspill(e, RCX);
    builder_exit_inline(b, EXIT_RAISED, b->start);
    over[-1] = e->at - over;
    if (done)
        land(done, e);
    uint64_t dead = dead_at_calls | UNIT(RAX);
    emit_define(e, dead & b->units);
    b->units &= ~dead;
    translate_return_from(b, b->start, 0);
}

void follow_insn(struct builder *b, struct insn *insn) {
    struct tool_units units = units_of(insn);
    void *prepared = tool->prepare(insn->pc, insn->bytes, &insn->z, insn->operands);
    b->followed = true;
    if (!prepared)
        return;
    builder_state(b, STATE_WITHIN, 0); // must not be done twice
    struct followed *followed = block_memory(sizeof *followed);
    *followed = (struct followed){insn->pc, prepared, units.writes & HIDDEN_UNITS};
    emit_gate_begin(&b->e);
    emit_move_imm(&b->e, RDI, (uint64_t)followed);
    emit_gate_call(&b->e, cache_gate_follow);
    // A stack pointer that is undefined leads nowhere anyway.
    b->written = units.writes & ~UNIT(RSP);
    b->units |= b->written;
}

void follow_define_overwritten(struct builder *b, struct insn *insn) {
    struct tool_units units = units_of(insn);
    emit_define(&b->e, units.kills & b->units);
    b->units &= ~units.kills;
}

bool follow_is_needed(const struct builder *b, struct insn *insn) {
    return b->units && units_of(insn).reads & b->units;
}

void follow_forget_dead(struct builder *b, const struct insn *insn) {
    if (insn->z.meta.category != ZYDIS_CATEGORY_RET && insn->z.meta.category != ZYDIS_CATEGORY_CALL)
        return;
    emit_define(&b->e, dead_at_calls & b->units);
    b->units &= ~dead_at_calls;
}
