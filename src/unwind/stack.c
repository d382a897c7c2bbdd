// Whole walks: steps that have been made before are made again from a thread's cache, and frames of
// the walk before are only compared.
#include "base/hash.h"
#include "unwind/step.h"

// What a walk without a cache looks at: a rule of no kind, which sends it to the slow path.
static const struct unwind_cache_entry no_entry;

// The first of the two entries that an address may be in. They share a line of the processor's
// cache.
static inline size_t cache_slot(uint64_t pc) {
    return hash_bucket(pc, UNWIND_CACHE_BITS) & ~UINT64_C(1);
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

static inline bool begin_walk(struct unwind_thread *thread) {
    if (atomic_load_explicit(&thread->walking, memory_order_relaxed))
        return false;
    atomic_store_explicit(&thread->walking, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static bool open_cache(struct unwind_space *space, struct unwind_thread *thread) {
    if (!begin_walk(thread))
        return false;
    uint64_t generation = unwind_space_generation(space);
    if (thread->generation != generation) {
        for (size_t i = 0; i < UNWIND_CACHE_SIZE; i++)
            thread->cache[i].pc = 0;
        thread->kept_count = 0;
        thread->generation = generation;
    }
    thread->kept_all = thread->kept_first = false;
    return true;
}

static inline void close_cache(struct unwind_thread *thread) {
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
        found = step_find_rule(walk->space, address, walk->exact);
        if (cached && found.table)
            keep_entry(cached, address, &found);
    }
    return step_take(walk, &found);
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
    // last time: so is the place where that has saved rbp. Kept frames beyond the limit of the walk
    // have not been looked at, and stay for one that goes further.
    if ((at + 1 == UNWIND_KEPT_MAX && keeper->thread->kept_bottom) || at - first == max) {
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

// The walk has reached the bottom, or its limit: what it noted replaces the kept frames that it did
// not meet.
static void keep_frames(struct keeper *keeper, uint64_t high, bool is_bottom) {
    struct unwind_thread *thread = keeper->thread;
    keeper->kept = true;
    size_t count = keeper->fresh < keeper->rest ? keeper->fresh : keeper->rest;
    for (size_t i = 1; i <= count; i++)
        thread->kept[keeper->rest - i] = thread->fresh[(keeper->fresh - i) % UNWIND_KEPT_MAX];
    thread->kept_count = UNWIND_KEPT_MAX - keeper->rest + count;
    thread->kept_high = high;
    if (keeper->rest == UNWIND_KEPT_MAX)
        thread->kept_bottom = is_bottom;
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
                keep_frames(keeper, walk->memory->high, true);
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
    if (keeper->thread)
        keep_frames(keeper, walk->memory->high, false);
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
    thread->kept_first = is_complete && keeper.kept;
    close_cache(thread);
    return is_complete ? walked.count : 0;
}

// Whether the stack is the one that the thread has walked last: every word that led from frame to
// frame is what it was.
static inline bool is_kept(const struct unwind_thread *thread, const uint64_t *frame,
                           uint64_t high) {
    const struct unwind_kept *at = &thread->kept[UNWIND_KEPT_MAX - thread->kept_count];
    if (!thread->kept_all || thread->kept_high != high || at->sp != (uint64_t)(frame + 2) ||
        at->pc != frame[1] || at->rbp != frame[0])
        return false;
    while (++at < thread->kept + UNWIND_KEPT_MAX)
        if (*(const uint64_t *)(at->sp - 8) != at->pc ||
            (at->rbp_at && *(const uint64_t *)at->rbp_at != at->rbp))
            return false;
    return true;
}

// A walk that has been made before, from start to end.
static inline void count_kept(struct unwind_thread *thread) {
    thread->counts.walks++;
    thread->counts.frames += thread->kept_frames;
    thread->counts.ends[UNWIND_END_BOTTOM]++;
}

// The walk of unwind_callers_quickly where it is not the one before.
static __attribute__((noinline)) bool
walk_callers(struct unwind_space *space, struct unwind_thread *thread, const uint64_t *frame,
             const struct unwind_memory *memory, uint64_t *pcs, size_t max, struct walked *walked) {
    uint64_t sp = (uint64_t)(frame + 2);
    struct walk walk = {.space = space, .memory = memory, .quick = true};
    struct keeper keeper;
    walk.registers.value[UNWIND_PC] = frame[1];
    walk.registers.value[UNWIND_RSP] = sp;
    walk.registers.value[UNWIND_RBP] = frame[0];
    start_keeping(&keeper, thread, memory);
    // The other registers are not known, as if frames had been skipped to come here.
    keeper.skipped = true;
    note(&keeper, &(struct unwind_kept){frame[1], sp, frame[0], (uint64_t)frame});
    bool is_complete = walk_stack(&walk, thread, &keeper, pcs, max, walked);
    if (is_complete)
        count_walk(thread, &walk, walked);
    // One of the two arrays may have been too small for all of them.
    thread->kept_all =
        keeper.kept && walked->end == UNWIND_END_BOTTOM && walked->count < UNWIND_KEPT_MAX;
    thread->kept_frames = walked->count;
    return is_complete;
}

size_t unwind_callers_quickly(struct unwind_space *space, struct unwind_thread *thread,
                              const uint64_t *frame, const struct unwind_memory *memory,
                              uint64_t *pcs, size_t max, enum unwind_end *end, bool *is_same) {
    struct walked walked = {.end = UNWIND_END_BOTTOM};
    if (thread->generation != unwind_space_generation(space) || !begin_walk(thread))
        return 0;
    *is_same = is_kept(thread, frame, memory->high) && thread->kept_frames < max;
    if (*is_same) {
        walked.count = thread->kept_frames;
        count_kept(thread);
    } else {
        thread->kept_all = thread->kept_first = false;
        if (!walk_callers(space, thread, frame, memory, pcs, max, &walked))
            walked.count = 0;
    }
    close_cache(thread);
    *end = walked.end;
    return walked.count;
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

// ---- walks by heart ----

// The word at the stack pointer is a return address where a function begins.
static inline size_t recall_slot(uint64_t pc, uint64_t sp) {
    uint64_t sum = pc + 3 * sp + (*(const uint64_t *)sp << 20);
    return hash_bucket(sum, UNWIND_RECALL_BITS);
}

static void add_word(struct unwind_recalled *entry, uint64_t at, uint64_t word) {
    entry->words[entry->count].at = (const uint64_t *)at;
    entry->words[entry->count++].word = word;
}

void unwind_remember(struct unwind_recall *recall, const struct unwind_thread *thread,
                     const struct unwind_registers *registers, const uint64_t *pcs, size_t count,
                     uint32_t value) {
    const struct unwind_kept *kept = &thread->kept[UNWIND_KEPT_MAX - thread->kept_count];
    uint64_t pc = registers->value[UNWIND_PC], sp = registers->value[UNWIND_RSP];
    if (!thread->kept_first || count < 2 || count > UNWIND_RECALL_WORDS / 2 + 1 ||
        count - 1 > thread->kept_count || pcs[0] != pc)
        return;
    size_t slot = recall_slot(pc, sp);
    struct unwind_recalled *entry =
        &recall->entries[slot][recall->next[slot]++ % UNWIND_RECALL_WAYS];
    *entry = (struct unwind_recalled){.pc = pc,
                                      .sp = sp,
                                      .rbp = registers->value[UNWIND_RBP],
                                      .high = thread->kept_high,
                                      .generation = thread->generation};
    for (size_t i = 0; i + 1 < count; i++) {
        uint64_t address = pcs[i] - (i > 0);
        const struct unwind_cache_entry *rule = find_entry(thread, address);
        if (kept[i].pc != pcs[i + 1])
            return;
        entry->wants_rbp |= rule->pc != address || rule->rule.base != UNWIND_RSP;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        add_word(entry, kept[i].sp - 8, kept[i].pc);
        if (entry->wants_rbp && kept[i].rbp_at)
            add_word(entry, kept[i].rbp_at, kept[i].rbp);
    }
    entry->value = value;
}

uint32_t unwind_recollect(const struct unwind_recall *recall, struct unwind_space *space,
                          uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t high) {
    const struct unwind_recalled *set = recall->entries[recall_slot(pc, sp)];
    uint64_t generation = unwind_space_generation(space);
    for (size_t way = 0; way < UNWIND_RECALL_WAYS; way++) {
        const struct unwind_recalled *entry = &set[way];
        if (entry->pc != pc || entry->sp != sp || entry->high != high ||
            (entry->wants_rbp && entry->rbp != rbp) || entry->generation != generation)
            continue;
        size_t same = 0;
        while (same < entry->count && *entry->words[same].at == entry->words[same].word)
            same++;
        if (same == entry->count && entry->value)
            return entry->value;
    }
    return 0;
}
