// The stack, and where the program goes on: calls, jumps but for those on flags (track/branch.c),
// system calls.
#include "tools/memcheck/target/track/parts.h"

// ---- the stack ----

static uint64_t stack_pointer(struct context *c) {
    if (general_bits(c, 4))
        report_value(c, 8);
    return c->values[4];
}

static void run_push(struct context *c, const struct track *t) {
    unsigned size = t->width / 8;
    uint64_t bits = operand_bits(c, t, 0);
    memory_store_word(c, stack_pointer(c) - size, size, bits);
}

static void run_pop(struct context *c, const struct track *t) {
    unsigned size = t->width / 8;
    uint64_t bits = memory_load_word(c, stack_pointer(c), size);
    if (t->operands[0].kind == OPERAND_MEMORY && t->operands[0].access.base == 4) {
        // The address is that after rsp has moved.
        memory_store_word(c, tool_access_address(&t->operands[0].access) + size, size, bits);
        return;
    }
    operand_set_bits(c, t, 0, bits);
}

static void run_push_flags(struct context *c, const struct track *t) {
    unsigned size = t->width / 8;
    memory_store_word(c, stack_pointer(c) - size, size, flags_now(c).bits);
}

static void run_pop_flags(struct context *c, const struct track *t) {
    unsigned size = t->width / 8;
    uint64_t address = stack_pointer(c);
    uint64_t bits = memory_load_word(c, address, size);
    set_conditions(c, flags_conditions((struct flags){memory_value(address, size) & FLAGS_ALL,
                                                      bits & FLAGS_ALL}));
}

static void run_leave(struct context *c, const struct track *t) {
    unsigned size = t->width / 8;
    uint64_t bits = general_bits(c, 5);
    if (bits)
        report_value(c, 8);
    uint64_t frame = memory_load_word(c, c->values[5], size);
    set_general_bits(c, 4, bits);
    set_general_bits(c, 5, size == 8 ? frame : (bits & ~0xfffful) | frame);
}

static void run_enter(struct context *c, const struct track *t) {
    uint64_t stack = stack_pointer(c), bits = general_bits(c, 5);
    unsigned size = t->width / 8, level = t->operands[1].immediate & 31;
    memory_store_word(c, stack - size, size, bits);
    for (unsigned i = 1; i < level; i++) {
        uint64_t pointer = memory_load_word(c, c->values[5] - i * size, size);
        memory_store_word(c, stack - (i + 1) * size, size, pointer);
    }
    if (level)
        memory_store_word(c, stack - (level + 1) * size, size, 0);
    set_general_bits(c, 5, size == 8 ? 0 : bits & ~0xfffful);
}

// ---- calls and jumps ----

static void run_call(struct context *c, const struct track *t) {
    if (operand_bits(c, t, 0))
        report_value(c, 8);
    memory_store_word(c, stack_pointer(c) - 8, 8, 0);
}

static void run_jump(struct context *c, const struct track *t) {
    if (operand_bits(c, t, 0))
        report_value(c, 8);
}

static void run_return(struct context *c, const struct track *t) {
    if (memory_load_word(c, stack_pointer(c), 8))
        report_value(c, 8);
}

// jrcxz, jecxz, loop, loope, loopne.
static void run_counted_jump(struct context *c, const struct track *t) {
    uint64_t mask = width_mask(t->width);
    struct item count = {c->values[1] & mask, general_bits(c, 1) & mask};
    bool loops = t->mnemonic != ZYDIS_MNEMONIC_JRCXZ && t->mnemonic != ZYDIS_MNEMONIC_JECXZ;
    if (loops) {
        count.bits = subtract_bits(count, (struct item){1, 0}, NOTHING) & mask;
        count.value = (count.value - 1) & mask;
        set_general_bits(c, 1, count.bits);
    }
    bool unsure = count.bits && !(count.value & ~count.bits);
    if (t->mnemonic == ZYDIS_MNEMONIC_LOOPE || t->mnemonic == ZYDIS_MNEMONIC_LOOPNE)
        unsure |= condition_bits(c) >> COND_Z & 1;
    if (unsure)
        report_condition(c);
}

// A system call returns defined values; what it is given has been looked at elsewhere.
static void run_system_call(struct context *c, const struct track *t) {
    set_general_bits(c, 0, 0);
    set_general_bits(c, 1, 0);
    set_general_bits(c, 11, 0);
}

// ---- which is which ----

static track_function *set_width(struct track *t, unsigned width, track_function *run) {
    t->width = width;
    return run;
}

// The stack's operand is the hidden one.
static unsigned stack_width(const struct track *t) {
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].is_hidden && t->operands[i].kind == OPERAND_MEMORY)
            return t->operands[i].size * 8;
    return 64;
}

track_function *track_control(struct track *t, const ZydisDecodedInstruction *z) {
    bool is_near = z->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        return set_width(t, stack_width(t), run_push);
    case ZYDIS_MNEMONIC_POP:
        return set_width(t, stack_width(t), run_pop);
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFQ:
        return set_width(t, stack_width(t), run_push_flags);
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        return set_width(t, stack_width(t), run_pop_flags);
    case ZYDIS_MNEMONIC_LEAVE:
        return set_width(t, stack_width(t), run_leave);
    case ZYDIS_MNEMONIC_ENTER:
        return set_width(t, stack_width(t), run_enter);
    case ZYDIS_MNEMONIC_CALL:
        return is_near ? run_call : NULL;
    case ZYDIS_MNEMONIC_JMP:
        return is_near ? run_jump : NULL;
    case ZYDIS_MNEMONIC_RET:
        return is_near ? run_return : NULL;
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JECXZ:
        return set_width(t, z->address_width, run_counted_jump);
    case ZYDIS_MNEMONIC_SYSCALL:
        return run_system_call;
    default:
        return NULL;
    }
}
