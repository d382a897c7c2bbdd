// From a frame to its caller, by whatever rule there is.
#include "unwind/step.h"

#include "base/x86.h"
#include "unwind/expression.h"

// What the kernel calls bad for certain: nothing is ever mapped there.
#define LOWEST_CODE 4096

const char *unwind_end_text(enum unwind_end end) {
    static const char *const texts[] = {
#define X(name, text) text,
        UNWIND_ENDS(X)
#undef X
    };
    return end < UNWIND_END_COUNT ? texts[end] : "unknown";
}

struct found step_find_rule(struct unwind_space *space, uint64_t address, bool exact) {
    struct found found = {0};
    struct module *module = unwind_space_find(space, address);
    if (!module)
        return found;
    found.table = unwind_space_table(space, module);
    if (!found.table)
        return found;
    uint64_t offset = address - module->image.start;
    const struct unwind_rule *rule = unwind_table_find(found.table, offset);
    found.rule = *rule;
    if (rule->kind != RULE_NONE || exact)
        return found;
    rule = unwind_table_find(found.table, offset + 1);
    if (rule->signal)
        found.rule = *rule;
    else if (rule->kind != RULE_NONE)
        found.rule.kind = RULE_END;
    return found;
}

// ---- wide rules ----

static enum unwind_end read_word(const struct walk *walk, uint64_t address, uint64_t *value) {
    return memory_read(walk->memory, address, value) ? STEP_DONE : UNWIND_END_UNREADABLE;
}

static enum unwind_end evaluate(const struct walk *walk, const struct unwind_table *table,
                                const struct unwind_column *column, const uint64_t *cfa,
                                uint64_t *value) {
    switch (unwind_expression_evaluate(table_expression(table, column), column->length,
                                       &walk->registers, walk->memory, cfa, value)) {
    case EXPRESSION_OK:
        return STEP_DONE;
    case EXPRESSION_UNREADABLE:
        return UNWIND_END_UNREADABLE;
    default:
        return UNWIND_END_BAD_RULE;
    }
}

// The value that a column stands for. cfa is NULL while the CFA itself is sought.
static enum unwind_end column_value(const struct walk *walk, const struct unwind_table *table,
                                    const struct unwind_column *column, const uint64_t *cfa,
                                    uint64_t *value) {
    uint64_t place = walk->registers.value[column->reg] + (uint64_t)(int64_t)column->value;
    enum unwind_end end;
    switch ((enum column_kind)column->kind) {
    case COLUMN_AT_CFA:
        return read_word(walk, *cfa + (uint64_t)(int64_t)column->value, value);
    case COLUMN_CFA:
        *value = *cfa + (uint64_t)(int64_t)column->value;
        return STEP_DONE;
    case COLUMN_AT_REGISTER:
        return read_word(walk, place, value);
    case COLUMN_REGISTER:
        *value = place;
        return STEP_DONE;
    case COLUMN_AT_EXPRESSION:
        end = evaluate(walk, table, column, cfa, &place);
        return end == STEP_DONE ? read_word(walk, place, value) : end;
    case COLUMN_EXPRESSION:
        return evaluate(walk, table, column, cfa, value);
    case COLUMN_SAME:
    case COLUMN_UNDEFINED:
        break;
    }
    return UNWIND_END_BAD_RULE;
}

// Whether a place that cannot be read belonged to a register that has been popped since, and holds
// its value again. Epilogues seldom say so. Copies of a stack begin at the stack pointer.
static bool is_popped(const struct walk *walk, uint64_t place) {
    uint64_t sp = walk->registers.value[UNWIND_RSP];
    return walk->exact && place < sp && sp - place <= RED_ZONE;
}

// The place that a register or an expression gives may depend on what has been popped itself.
static bool column_is_popped(const struct walk *walk, const struct unwind_column *column,
                             uint64_t cfa) {
    if (column->kind == COLUMN_AT_CFA)
        return is_popped(walk, cfa + (uint64_t)(int64_t)column->value);
    return walk->exact &&
           (column->kind == COLUMN_AT_REGISTER || column->kind == COLUMN_AT_EXPRESSION);
}

static enum unwind_end step_wide(struct walk *walk, const struct found *found) {
    const struct unwind_wide_rule *wide = table_wide(found->table, &found->rule);
    struct unwind_registers next = walk->registers;
    uint64_t cfa;
    enum unwind_end end = column_value(walk, found->table, &wide->cfa, NULL, &cfa);
    if (end != STEP_DONE)
        return end;
    next.value[UNWIND_RSP] = cfa;
    for (uint32_t left = wide->used; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        if (wide->columns[column].kind == COLUMN_UNDEFINED)
            continue;
        end = column_value(walk, found->table, &wide->columns[column], &cfa, &next.value[column]);
        if (end == UNWIND_END_UNREADABLE && column != UNWIND_PC &&
            column_is_popped(walk, &wide->columns[column], cfa))
            continue;
        if (end != STEP_DONE)
            return end;
    }
    // A signal may have come on another stack; otherwise callers lie above. Code that has popped
    // its return address is level with its caller.
    uint64_t sp = walk->registers.value[UNWIND_RSP];
    if (!found->rule.signal && next.value[UNWIND_RSP] < sp + !walk->exact)
        return UNWIND_END_NO_PROGRESS;
    walk->registers = next;
    return STEP_DONE;
}

// ---- the common rules, one read at a time ----

static enum unwind_end step_fast(struct walk *walk, const struct unwind_rule *rule) {
    static const uint8_t slot_register[6] = {UNWIND_RBX, UNWIND_RBP, UNWIND_R12,
                                             UNWIND_R13, UNWIND_R14, UNWIND_R15};
    struct unwind_registers next = walk->registers;
    uint64_t cfa = next.value[rule->base] + (uint64_t)(int64_t)rule->offset;
    if (cfa <= next.value[UNWIND_RSP])
        return UNWIND_END_NO_PROGRESS;
    if (!memory_read(walk->memory, cfa - 8, &next.value[UNWIND_PC]))
        return UNWIND_END_UNREADABLE;
    for (size_t i = 0; i < sizeof slot_register; i++) {
        uint64_t place = cfa - 8 * (uint64_t)rule->slots[i];
        if (rule->slots[i] && !memory_read(walk->memory, place, &next.value[slot_register[i]]) &&
            !is_popped(walk, place))
            return UNWIND_END_UNREADABLE;
    }
    next.value[UNWIND_RSP] = cfa;
    walk->registers = next;
    return STEP_DONE;
}

// ---- code without unwind information ----

// The instructions to which a signal handler returns: mov $15, %rax; syscall. Not every libc
// describes them. The kernel has put the interrupted registers where rsp points then.
static bool is_sigreturn(struct walk *walk, const struct module *module) {
    static const uint8_t code[9] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    uint64_t pc = walk->registers.value[UNWIND_PC];
    return module && module->image.mapped && module_is_text(module, pc, sizeof code) &&
           memcmp((const void *)pc, code, sizeof code) == 0;
}

static enum unwind_end step_sigreturn(struct walk *walk) {
    static const uint8_t order[] = {UNWIND_R8,  UNWIND_R9,  UNWIND_R10, UNWIND_R11, UNWIND_R12,
                                    UNWIND_R13, UNWIND_R14, UNWIND_R15, UNWIND_RDI, UNWIND_RSI,
                                    UNWIND_RBP, UNWIND_RBX, UNWIND_RDX, UNWIND_RAX, UNWIND_RCX,
                                    UNWIND_RSP, UNWIND_PC};
    enum { FIRST_REGISTER = 40 };
    struct unwind_registers next = walk->registers;
    uint64_t place = next.value[UNWIND_RSP] + FIRST_REGISTER;
    for (size_t i = 0; i < sizeof order; i++)
        if (!memory_read(walk->memory, place + 8 * i, &next.value[order[i]]))
            return UNWIND_END_UNREADABLE;
    walk->registers = next;
    walk->exact = true;
    return STEP_DONE;
}

// Whether an address lies in the code of a module, behind a call as far as that can be seen.
static bool is_return_address(struct walk *walk, uint64_t address) {
    enum { CALL_MAX = 7 };
    struct module *module = unwind_space_find(walk->space, address - 1);
    if (!module || !module_is_text(module, address - 1, 1))
        return false;
    if (!module->image.mapped || !module_is_text(module, address - CALL_MAX, CALL_MAX))
        return true;
    const uint8_t *code = (const uint8_t *)address;
    if (code[-5] == 0xe8)
        return true;
    for (int size = 2; size <= CALL_MAX; size++)
        if (code[-size] == 0xff && (code[1 - size] >> 3 & 7) == 2)
            return true;
    return false;
}

// A jump through memory, as in the linkage stubs that linkers make without describing them.
static bool is_stub(const struct walk *walk, const struct module *module) {
    static const uint8_t landing[] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint64_t pc = walk->registers.value[UNWIND_PC];
    if (!module || !module->image.mapped || !module_is_text(module, pc, 8))
        return false;
    const uint8_t *code = (const uint8_t *)pc;
    if (memcmp(code, landing, sizeof landing) == 0)
        code += sizeof landing;
    if (*code == 0xf2)
        code++;
    return code[0] == 0xff && code[1] == 0x25;
}

// Where nothing has been pushed yet, the return address is on top of the stack: in a linkage stub,
// and after a call of something that is no code at all.
static bool step_top_of_stack(struct walk *walk, const struct module *module) {
    const struct unwind_memory *memory = walk->memory;
    uint64_t pc = walk->registers.value[UNWIND_PC], sp = walk->registers.value[UNWIND_RSP], caller;
    bool wild =
        pc < LOWEST_CODE || (!module && memory->is_code && !memory->is_code(memory->context, pc));
    if (!walk->exact || !(wild || is_stub(walk, module)) || !memory_read(memory, sp, &caller) ||
        !is_return_address(walk, caller))
        return false;
    walk->registers.value[UNWIND_PC] = caller;
    walk->registers.value[UNWIND_RSP] = sp + 8;
    walk->exact = false;
    return true;
}

// Whether an address outside all modules may be the return address of the frame at bp. Only the
// caller can know; else the frame before must look like one, too.
static bool is_outside_code(struct walk *walk, uint64_t address, uint64_t bp, uint64_t saved) {
    const struct unwind_memory *memory = walk->memory;
    uint64_t next;
    if (memory->is_code)
        return memory->is_code(memory->context, address - 1);
    return saved > bp && saved % 8 == 0 && memory_read(memory, saved + 8, &next) &&
           next >= LOWEST_CODE && next >> 47 == 0;
}

// Follows the frame pointer if what it points to looks like a frame: it lies above the stack
// pointer, and a return address is there. This serves hand-written code and code that was generated
// at run time.
static enum unwind_end step_frame_pointer(struct walk *walk, bool in_module) {
    const struct unwind_memory *memory = walk->memory;
    enum unwind_end end = in_module ? UNWIND_END_NO_RULE : UNWIND_END_NO_MODULE;
    uint64_t *value = walk->registers.value;
    uint64_t bp = value[UNWIND_RBP], saved, caller;
    // A chain of frame pointers ends with 0. Elsewhere that is a number like any other.
    bool in_chain = walk->guessed_sp == value[UNWIND_RSP];
    if (bp == 0 && in_chain)
        return UNWIND_END_BOTTOM;
    if (bp < value[UNWIND_RSP] || bp % 8 != 0 || !memory_read(memory, bp, &saved) ||
        !memory_read(memory, bp + 8, &caller))
        return end;
    if (saved == 0 && caller == 0 && in_chain)
        return UNWIND_END_BOTTOM;
    if (caller < LOWEST_CODE || caller >> 47 ||
        (!is_return_address(walk, caller) && !is_outside_code(walk, caller, bp, saved)))
        return end;
    value[UNWIND_PC] = caller;
    value[UNWIND_RSP] = bp + 16;
    value[UNWIND_RBP] = saved;
    walk->exact = false;
    walk->guessed++;
    walk->guessed_sp = bp + 16;
    return STEP_DONE;
}

static enum unwind_end step_unknown(struct walk *walk) {
    struct module *module = unwind_space_find(walk->space, walk->registers.value[UNWIND_PC]);
    if (is_sigreturn(walk, module))
        return step_sigreturn(walk);
    if (step_top_of_stack(walk, module))
        return STEP_DONE;
    return step_frame_pointer(walk, module != NULL);
}

enum unwind_end step_take(struct walk *walk, const struct found *found) {
    enum unwind_end end;
    switch ((enum unwind_rule_kind)found->rule.kind) {
    case RULE_FAST:
        end = step_fast(walk, &found->rule);
        break;
    case RULE_WIDE:
        end = step_wide(walk, found);
        break;
    case RULE_END:
        return UNWIND_END_BOTTOM;
    default:
        return step_unknown(walk);
    }
    if (end == STEP_DONE)
        walk->exact = found->rule.signal;
    return end;
}

enum unwind_end unwind_step(struct unwind_space *space, struct unwind_frame *frame,
                            const struct unwind_memory *memory) {
    struct walk walk = {.space = space,
                        .memory = memory,
                        .registers = frame->registers,
                        .exact = frame->exact,
                        .guessed_sp = frame->guessed ? frame->registers.value[UNWIND_RSP] : 0};
    struct found found = step_find_rule(space, lookup_address(&walk), walk.exact);
    enum unwind_end end = step_take(&walk, &found);
    if (end == STEP_DONE && walk.registers.value[UNWIND_PC] == 0)
        end = UNWIND_END_BOTTOM;
    if (end == STEP_DONE)
        *frame = (struct unwind_frame){walk.registers, walk.exact, walk.guessed > 0};
    return end;
}

bool unwind_is_signal_frame(struct unwind_space *space, uint64_t pc) {
    struct walk walk = {.space = space, .registers.value[UNWIND_PC] = pc};
    return step_find_rule(space, lookup_address(&walk), walk.exact).rule.signal ||
           is_sigreturn(&walk, unwind_space_find(space, pc));
}
