#include "unwind/unwind.h"

#include "unwind/expression.h"
#include "unwind/space.h"

#define STEP_DONE UNWIND_END_COUNT

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

// A rule with the table that it may refer to; no table: no module there.
struct found {
    struct unwind_rule rule;
    const struct unwind_table *table;
};

struct walk {
    struct unwind_space *space;
    const struct unwind_memory *memory;
    struct unwind_registers registers;
    bool exact;
    bool quick;          // only steps that have been made before
    uint64_t guessed;    // how many frames were
    uint64_t guessed_sp; // the stack pointer of the last one
};

static uint64_t lookup_address(const struct walk *walk) {
    return walk->registers.value[UNWIND_PC] - !walk->exact;
}

// The rule for the frame whose pc is address, or address + 1 unless it is exact. No call lies
// before a return address that is the start of a function: somebody put it on the stack. Signal
// trampolines are entered that way and say so in their rule; with anything else, such as what ends
// a coroutine, the stack begins.
static __attribute__((noinline)) struct found find_rule(struct unwind_space *space,
                                                        uint64_t address, bool exact) {
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
    enum { RED_ZONE = 128 };
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

static __attribute__((noinline)) enum unwind_end step(struct walk *walk,
                                                      const struct found *found) {
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
    struct found found = find_rule(space, lookup_address(&walk), walk.exact);
    enum unwind_end end = step(&walk, &found);
    if (end == STEP_DONE && walk.registers.value[UNWIND_PC] == 0)
        end = UNWIND_END_BOTTOM;
    if (end == STEP_DONE)
        *frame = (struct unwind_frame){walk.registers, walk.exact, walk.guessed > 0};
    return end;
}

bool unwind_is_signal_frame(struct unwind_space *space, uint64_t pc) {
    struct walk walk = {.space = space, .registers.value[UNWIND_PC] = pc};
    return find_rule(space, lookup_address(&walk), walk.exact).rule.signal ||
           is_sigreturn(&walk, unwind_space_find(space, pc));
}

// ---- whole walks ----

// What a walk without a cache looks at: a rule of no kind, which sends it to the slow path.
static const struct unwind_cache_entry no_entry;

// The first of the two entries that an address may be in. They share a line of the processor's
// cache.
static inline size_t cache_slot(uint64_t pc) {
    return (pc * UINT64_C(0x9e3779b97f4a7c15) >> (64 - UNWIND_CACHE_BITS)) & ~UINT64_C(1);
}

static inline const struct unwind_cache_entry *find_entry(const struct unwind_thread *cached,
                                                          uint64_t address) {
    if (!cached)
        return &no_entry;
    const struct unwind_cache_entry *entry = &cached->cache[cache_slot(address)];
    return entry->pc == address ? entry : entry + 1;
}

// The newest goes first, the one before it second.
static void keep_entry(struct unwind_thread *cached, uint64_t address, const struct found *found) {
    struct unwind_cache_entry *entry = &cached->cache[cache_slot(address)];
    entry[1] = entry[0];
    *entry = (struct unwind_cache_entry){address, found->rule, found->table};
    cached->counts.missed++;
}

// The pc and the stack pointer of a walk, apart from its other registers: each step depends on
// those of the step before, and the way through memory would double its time.
struct place {
    uint64_t pc, sp;
    bool exact;
};

// The fast path of a step: everything it reads is known to lie within the bounds of the stack.
// Reading a register's own place when it was not saved avoids six branches that cannot be
// predicted.
static inline bool step_within(struct walk *walk, const struct unwind_rule *rule,
                               struct place *place) {
    uint64_t *value = walk->registers.value;
    uint64_t low = walk->memory->low, cfa = place->sp;
    if (rule->base != UNWIND_RSP)
        cfa = value[rule->base];
    cfa += (uint64_t)(int64_t)rule->offset;
    if (rule->kind != RULE_FAST || cfa <= place->sp || cfa > walk->memory->high || cfa < low ||
        cfa - low < 8 * (uint64_t)rule->deepest)
        return false;
    const uint64_t *top = (const uint64_t *)cfa;
#define RESTORE(index, reg)                                                                        \
    do {                                                                                           \
        const uint64_t *saved = top - rule->slots[index];                                          \
        value[reg] = *(rule->slots[index] ? saved : &value[reg]);                                  \
    } while (0)
    RESTORE(0, UNWIND_RBX);
    RESTORE(1, UNWIND_RBP);
    RESTORE(2, UNWIND_R12);
    RESTORE(3, UNWIND_R13);
    RESTORE(4, UNWIND_R14);
    RESTORE(5, UNWIND_R15);
#undef RESTORE
    *place = (struct place){top[-1], cfa, rule->signal};
    return true;
}

static bool open_cache(struct unwind_space *space, struct unwind_thread *thread) {
    if (atomic_load_explicit(&thread->walking, memory_order_relaxed))
        return false;
    atomic_store_explicit(&thread->walking, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t generation = unwind_space_generation(space);
    if (thread->generation != generation) {
        for (size_t i = 0; i < UNWIND_CACHE_SIZE; i++)
            thread->cache[i].pc = 0;
        thread->kept_count = 0;
        thread->generation = generation;
    }
    thread->kept_all = false;
    return true;
}

static void close_cache(struct unwind_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->walking, false, memory_order_relaxed);
}

// A step off the fast path. Puts the rule into the cache, if there is one. Code outside all modules
// is not cached: a module may be added there later, and additions do not empty caches.
static __attribute__((noinline)) enum unwind_end step_slowly(struct walk *walk,
                                                             struct unwind_thread *cached) {
    uint64_t address = lookup_address(walk);
    const struct unwind_cache_entry *entry = find_entry(cached, address);
    struct found found = {entry->rule, entry->table};
    if (entry->pc != address) {
        found = find_rule(walk->space, address, walk->exact);
        if (cached && found.table)
            keep_entry(cached, address, &found);
    }
    return step(walk, &found);
}

// ---- frames of the walk before ----
//
// Most walks of a thread share their outer frames with the walk before. A frame's state is its pc,
// stack pointer and rbp; with rules based on these two registers it determines, together with the
// words at which return address and rbp are saved, the state of the next frame. So from a frame
// with the state of a kept one, a walk goes on along the kept ones as long as those words are what
// they were. Stacks with other rules (signal frames, other base registers, guesses) are not kept,
// and a walk that meets such a rule after it has skipped frames, so that the registers saved in
// them are not known to it, starts again without.

struct keeper {
    struct unwind_thread *thread; // NULL: nothing is kept or used
    size_t join;                  // the first kept frame that may still be met
    size_t rest;                  // the kept frames from here on are outer frames of this walk, too
    size_t fresh;                 // frames noted before those
    bool skipped;                 // steps were left out: only pc, sp and rbp are known
    bool kept;                    // the frames of the walk are kept now
};

static void start_keeping(struct keeper *keeper, struct unwind_thread *cached,
                          const struct unwind_memory *memory) {
    *keeper = (struct keeper){.thread = cached, .join = UNWIND_KEPT_MAX, .rest = UNWIND_KEPT_MAX};
    if (cached && cached->kept_high == memory->high)
        keeper->join -= cached->kept_count;
}

// Of more frames than there is room for, the outermost stay.
static inline void note(struct keeper *keeper, const struct unwind_kept *frame) {
    keeper->thread->fresh[keeper->fresh++ % UNWIND_KEPT_MAX] = *frame;
}

// Notes the frame that a step by `rule` has led to.
static inline void note_step(struct keeper *keeper, const struct unwind_rule *rule,
                             const struct place *place, uint64_t last_sp, uint64_t rbp) {
    uint64_t rbp_at = rule->slots[1] ? place->sp - 8 * (uint64_t)rule->slots[1] : 0;
    if ((rule->base != UNWIND_RSP && rule->base != UNWIND_RBP) || place->exact ||
        (rbp_at && rbp_at < last_sp))
        keeper->thread = NULL;
    else
        note(keeper, &(struct unwind_kept){place->pc, place->sp, rbp, rbp_at});
}

// Goes along kept frames from the one with the state of `place`, if there is one. Writes the pcs of
// the frames it leaves behind and returns how many; `place` is then the last one reached.
static inline size_t follow_kept(struct keeper *keeper, struct walk *walk, struct place *place,
                                 uint64_t *pcs, size_t max) {
    struct unwind_kept *kept = keeper->thread->kept;
    while (keeper->join < UNWIND_KEPT_MAX && kept[keeper->join].sp < place->sp)
        keeper->join++;
    size_t first = keeper->join;
    uint64_t *rbp = &walk->registers.value[UNWIND_RBP];
    if (first == UNWIND_KEPT_MAX || kept[first].sp != place->sp || kept[first].pc != place->pc ||
        kept[first].rbp != *rbp)
        return 0;
    size_t at = first;
    for (; at + 1 < UNWIND_KEPT_MAX && at - first < max; at++) {
        const struct unwind_kept *next = &kept[at + 1];
        if (*(const uint64_t *)(next->sp - 8) != next->pc ||
            (next->rbp_at && *(const uint64_t *)next->rbp_at != next->rbp))
            break;
        pcs[at - first] = kept[at].pc;
    }
    // The first of them has been noted already, by what led to it, which is another frame than the
    // last time: so is the place where that has saved rbp.
    if (at + 1 == UNWIND_KEPT_MAX) {
        keeper->rest = first;
        keeper->fresh--;
        kept[first].rbp_at = keeper->thread->fresh[keeper->fresh % UNWIND_KEPT_MAX].rbp_at;
    } else {
        for (size_t i = first + 1; i <= at; i++)
            note(keeper, &kept[i]);
    }
    keeper->join = at + 1;
    keeper->skipped |= at > first;
    *place = (struct place){kept[at].pc, kept[at].sp, false};
    *rbp = kept[at].rbp;
    return at - first;
}

// The walk has reached the bottom: what it noted replaces the kept frames that it did not meet.
static void keep_frames(struct keeper *keeper, uint64_t high) {
    struct unwind_thread *thread = keeper->thread;
    keeper->kept = true;
    size_t count = keeper->fresh < keeper->rest ? keeper->fresh : keeper->rest;
    for (size_t i = 1; i <= count; i++)
        thread->kept[keeper->rest - i] = thread->fresh[(keeper->fresh - i) % UNWIND_KEPT_MAX];
    thread->kept_count = UNWIND_KEPT_MAX - keeper->rest + count;
    thread->kept_high = high;
}

// Ends a walk that cannot go on along the fast path, or makes one slow step.
static enum unwind_end leave_fast_path(struct walk *walk, struct unwind_thread *cached,
                                       struct keeper *keeper, struct place *place) {
    walk->registers.value[UNWIND_PC] = place->pc;
    walk->registers.value[UNWIND_RSP] = place->sp;
    walk->exact = place->exact;
    keeper->thread = NULL;
    enum unwind_end result = step_slowly(walk, cached);
    *place = (struct place){walk->registers.value[UNWIND_PC], walk->registers.value[UNWIND_RSP],
                            walk->exact};
    return result;
}

struct walked {
    size_t count;
    enum unwind_end end;
};

// One walk. False: it went along kept frames into code that it cannot leave without the registers
// that were saved in them.
static bool walk_stack(struct walk *walk, struct unwind_thread *cached, struct keeper *keeper,
                       uint64_t *pcs, size_t max, struct walked *walked) {
    struct place place = {walk->registers.value[UNWIND_PC], walk->registers.value[UNWIND_RSP],
                          walk->exact};
    *walked = (struct walked){.end = UNWIND_END_LIMIT};
    if (keeper->skipped && keeper->join < UNWIND_KEPT_MAX)
        walked->count = follow_kept(keeper, walk, &place, pcs, max);
    while (walked->count < max) {
        pcs[walked->count++] = place.pc;
        uint64_t address = place.pc - !place.exact;
        uint64_t sp = place.sp;
        const struct unwind_cache_entry *entry = find_entry(cached, address);
        enum unwind_end result = STEP_DONE;
        if (__builtin_expect(entry->pc == address, 1) &&
            __builtin_expect(step_within(walk, &entry->rule, &place), 1)) {
            if (keeper->thread)
                note_step(keeper, &entry->rule, &place, sp, walk->registers.value[UNWIND_RBP]);
            if (keeper->thread && keeper->join < UNWIND_KEPT_MAX)
                walked->count +=
                    follow_kept(keeper, walk, &place, pcs + walked->count, max - walked->count);
            if (keeper->skipped && !keeper->thread)
                return false;
        } else if (entry->pc == address && entry->rule.kind == RULE_END) {
            walked->end = UNWIND_END_BOTTOM;
            if (keeper->thread)
                keep_frames(keeper, walk->memory->high);
            return true;
        } else if (keeper->skipped || walk->quick) {
            return false;
        } else {
            result = leave_fast_path(walk, cached, keeper, &place);
        }
        if (result == STEP_DONE && place.pc == 0)
            result = UNWIND_END_BOTTOM;
        if (result != STEP_DONE) {
            walked->end = result;
            return true;
        }
    }
    return true;
}

static void count_walk(struct unwind_thread *thread, const struct walk *walk,
                       const struct walked *walked) {
    thread->counts.walks++;
    thread->counts.frames += walked->count;
    thread->counts.guessed += walk->guessed;
    thread->counts.ends[walked->end]++;
}

size_t unwind_stack_quickly(struct unwind_space *space, struct unwind_thread *thread,
                            const struct unwind_registers *registers,
                            const struct unwind_memory *memory, uint64_t *pcs, size_t max) {
    struct walk walk = {
        .space = space, .memory = memory, .registers = *registers, .exact = true, .quick = true};
    struct keeper keeper;
    struct walked walked;
    if (thread->generation != unwind_space_generation(space) || !open_cache(space, thread))
        return 0;
    start_keeping(&keeper, thread, memory);
    bool is_complete = walk_stack(&walk, thread, &keeper, pcs, max, &walked);
    if (is_complete)
        count_walk(thread, &walk, &walked);
    close_cache(thread);
    return is_complete ? walked.count : 0;
}

size_t unwind_callers_quickly(struct unwind_space *space, struct unwind_thread *thread,
                              const uint64_t *frame, const struct unwind_memory *memory,
                              uint64_t *pcs, size_t max, enum unwind_end *end, bool *is_same) {
    uint64_t sp = (uint64_t)(frame + 2);
    struct walk walk = {.space = space, .memory = memory, .quick = true};
    struct keeper keeper;
    struct walked walked;
    bool kept_all = thread->kept_all;
    walk.registers.value[UNWIND_PC] = frame[1];
    walk.registers.value[UNWIND_RSP] = sp;
    walk.registers.value[UNWIND_RBP] = frame[0];
    if (thread->generation != unwind_space_generation(space) || !open_cache(space, thread))
        return 0;
    start_keeping(&keeper, thread, memory);
    // The other registers are not known, as if frames had been skipped to come here.
    keeper.skipped = true;
    size_t first = keeper.join;
    note(&keeper, &(struct unwind_kept){frame[1], sp, frame[0], (uint64_t)frame});
    bool is_complete = walk_stack(&walk, thread, &keeper, pcs, max, &walked);
    *is_same = keeper.kept && kept_all && keeper.rest == first && keeper.fresh == 0;
    if (is_complete)
        count_walk(thread, &walk, &walked);
    // One of the two arrays may have been too small for all of them.
    thread->kept_all = keeper.kept && walked.count < UNWIND_KEPT_MAX;
    close_cache(thread);
    *end = walked.end;
    return is_complete ? walked.count : 0;
}

void unwind_abandon(struct unwind_thread *thread) {
    close_cache(thread);
}

size_t unwind_stack(struct unwind_space *space, struct unwind_thread *thread,
                    const struct unwind_registers *registers, const struct unwind_memory *memory,
                    uint64_t *pcs, size_t max, enum unwind_end *end) {
    struct walk walk = {.space = space, .memory = memory, .registers = *registers, .exact = true};
    struct unwind_thread *cached = open_cache(space, thread) ? thread : NULL;
    struct keeper keeper;
    struct walked walked;
    start_keeping(&keeper, cached, memory);
    if (!walk_stack(&walk, cached, &keeper, pcs, max, &walked)) {
        walk =
            (struct walk){.space = space, .memory = memory, .registers = *registers, .exact = true};
        keeper = (struct keeper){0};
        walk_stack(&walk, cached, &keeper, pcs, max, &walked);
    }
    count_walk(thread, &walk, &walked);
    if (cached)
        close_cache(thread);
    if (end)
        *end = walked.end;
    return walked.count;
}
