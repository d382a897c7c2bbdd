// Instructions that have been executed, and how deep stacks are.
//
// Instructions are counted in runs that are executed whole: one addition at the head of each.
// Steps of repeated string instructions count one each, as Valgrind has it.
//
// Stacks matter at their deepest only, that is, just before they become smaller: there, a call
// looks whether the total could make a new peak, or whether a snapshot is due, and tells the
// supervisor only then (wire_heap.h: peak, next_…). A thread that waits does so in a system call,
// before which its depth is noted.
#include <pthread.h>
#include <string.h>
#include <x86intrin.h>

#include "base/x86.h"
#include "tools/heap/target/heap.h"
#include "tools/shared/instructions.h"

enum { RUN_MOST = 128, WORD_INSTRUCTIONS = 0 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap_thread *threads;
static uint64_t ended_instructions; // of threads that are gone
static int64_t stacks, heap;        // bytes, atomic

// ---- instructions ----

static struct {
    bool open;
    unsigned count;
    struct tool_count inserted;
} run;

static bool stack_falls; // it has been looked at since it last grew, in this block

void ticks_block(struct tool_block *block, uint64_t pc) {
    stack_falls = false;
}

static void close_run(void) {
    if (run.open)
        tool_fill_count(&run.inserted, 0, run.count);
    run.open = false;
}

void ticks_block_end(struct tool_block *block) {
    close_run();
}

// Each step counts, and so does the look at rcx that ends them, which the run has counted.
static void count_repeat(void *argument) {
    bool found;
    uint64_t steps = repeated_steps(argument, &found);
    heap_thread()->words[WORD_INSTRUCTIONS] += steps - found;
}

static void show_repeat(struct tool_block *block, const struct tool_insn *insn) {
    struct repeated *repeat = tool_allocate(sizeof *repeat);
    *repeat = insn_repeated(insn);
    tool_insert_call(block, count_repeat, repeat);
}

static void count_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (!run.open) {
        run.open = true;
        run.count = 0;
        tool_insert_word_count(block, &run.inserted, WORD_INSTRUCTIONS);
    }
    run.count++;
    if (insn_is_repeated(insn))
        show_repeat(block, insn);
    bool ends = insn->flow != TOOL_NEXT || run.count == RUN_MOST;
    tool_keep_together(block, !ends);
    if (ends)
        close_run();
}

static uint64_t sum_instructions(void) {
    uint64_t sum = ended_instructions;
    for (const struct heap_thread *thread = threads; thread; thread = thread->next)
        sum += __atomic_load_n(&thread->words[WORD_INSTRUCTIONS], __ATOMIC_RELAXED);
    return sum;
}

uint64_t ticks_instructions(void) {
    if (!heap_choices.instructions)
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t sum = sum_instructions();
    pthread_mutex_unlock(&lock);
    return sum;
}

// ---- stacks ----

enum effect { STACK_STAYS, STACK_GROWS, STACK_FALLS };

static enum effect effect_of_group(const uint8_t *code, bool is_wide_immediate, bool is_other) {
    int32_t amount = (int8_t)code[2];
    unsigned operation = code[1] >> 3 & 7;
    if (is_wide_immediate)
        memcpy(&amount, code + 2, sizeof amount);
    if (is_other || (code[1] & 0xc7) != 0xc4)
        return STACK_STAYS;
    if (operation == 5)
        amount = -amount;
    else if (operation != 0)
        return STACK_GROWS; // and, which aligns
    return amount > 0 ? STACK_FALLS : STACK_GROWS;
}

// What an instruction does to rsp; STACK_FALLS also where that is not known before it runs.
static enum effect effect_of(const struct tool_insn *insn) {
    uint8_t code[16] = {0}, rex = 0;
    unsigned at = 0, size = insn->size < 15 ? insn->size : 15;
    if (insn->flow == TOOL_CALL || insn->flow == TOOL_RETURN)
        return insn->flow == TOOL_CALL ? STACK_GROWS : STACK_FALLS;
    memcpy(code, insn->bytes, size);
    while (at < size &&
           (code[at] == 0x66 || (code[at] & 0xfe) == 0xf2 || (code[at] & 0xfe) == 0x64))
        at++;
    if ((code[at] & 0xf0) == 0x40)
        rex = code[at++];
    const uint8_t *op = code + at;
    bool register_is_rsp = (op[1] & 0x38) == 0x20 && !(rex & 4);
    bool operand_is_rsp = (op[1] & 0xc7) == 0xc4 && !(rex & 1);
    switch (op[0]) {
    case 0x50 ... 0x57:
    case 0x68:
    case 0x6a:
    case 0x9c:
    case 0xc8:
        return STACK_GROWS;
    case 0xff:
        return (op[1] & 0x38) == 0x30 ? STACK_GROWS : STACK_STAYS;
    case 0x58 ... 0x5f:
    case 0x8f:
    case 0x9d:
    case 0xc9:
        return STACK_FALLS;
    case 0x81:
    case 0x83:
        return effect_of_group(op, op[0] == 0x81, rex & 1);
    case 0x29: // sub rsp, register
        return operand_is_rsp ? STACK_GROWS : STACK_STAYS;
    case 0x01:
    case 0x89:
        return operand_is_rsp ? STACK_FALLS : STACK_STAYS;
    case 0x87:
        return operand_is_rsp || register_is_rsp ? STACK_FALLS : STACK_STAYS;
    case 0x03:
    case 0x2b:
    case 0x8b:
    case 0x8d:
        return register_is_rsp ? STACK_FALLS : STACK_STAYS;
    default:
        return STACK_STAYS;
    }
}

static void report_depth(void *unused) {
    int64_t total = __atomic_load_n(&stacks, __ATOMIC_RELAXED);
    tell_depth(ticks_instructions(), total > 0 ? (uint64_t)total : 0);
}

#pragma GCC push_options
#pragma GCC target("general-regs-only")

static uint64_t set_depth(struct heap_thread *thread, uint64_t rsp) {
    if (rsp < thread->stack_start || rsp >= thread->stack_end)
        return (uint64_t)__atomic_load_n(&stacks, __ATOMIC_RELAXED);
    int64_t depth = (int64_t)(thread->base - rsp);
    int64_t more = depth - thread->depth;
    thread->depth = depth;
    return (uint64_t)__atomic_add_fetch(&stacks, more, __ATOMIC_RELAXED);
}

static void before_fall(uint32_t unused, uint64_t rsp, void *state) {
    struct heap_thread *thread = state;
    uint64_t total = set_depth(thread, rsp) + (uint64_t)__atomic_load_n(&heap, __ATOMIC_RELAXED);
    struct tell_wishes wishes = tell_wishes();
    bool is_time = heap_choices.instructions
                       ? thread->words[WORD_INSTRUCTIONS] >= wishes.next_instructions
                       : __builtin_ia32_rdtsc() >= wishes.next_clock;
    if (__builtin_expect((int64_t)total > (int64_t)wishes.peak || is_time, 0))
        tool_with_vectors(report_depth, NULL);
}

#pragma GCC pop_options

static void follow_stack(struct tool_block *block, const struct tool_insn *insn) {
    enum effect effect = effect_of(insn);
    if (effect == STACK_FALLS && !stack_falls)
        tool_insert_fast_call(block, TOOL_ALWAYS, before_fall, 0);
    if (effect != STACK_STAYS)
        stack_falls = effect == STACK_FALLS;
}

uint64_t ticks_stacks(void) {
    if (!heap_choices.stacks)
        return 0;
    int64_t total = (int64_t)set_depth(heap_thread(), tool_register(RSP));
    return total > 0 ? (uint64_t)total : 0;
}

void ticks_heap_changed(int64_t bytes) {
    __atomic_add_fetch(&heap, bytes, __ATOMIC_RELAXED);
}

void ticks_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (heap_choices.stacks)
        follow_stack(block, insn);
    if (heap_choices.instructions)
        count_instruction(block, insn);
}

// ---- threads ----

void ticks_thread_started(void) {
    struct heap_thread *thread = heap_thread();
    thread->words = tool_thread_words();
    thread->base = tool_register(RSP);
    if (!tool_own_stack(&thread->stack_start, &thread->stack_end))
        thread->stack_start = thread->stack_end = 0;
    pthread_mutex_lock(&lock);
    thread->next = threads;
    threads = thread;
    pthread_mutex_unlock(&lock);
}

void ticks_thread_ended(void) {
    struct heap_thread *thread = heap_thread();
    pthread_mutex_lock(&lock);
    for (struct heap_thread **at = &threads; *at; at = &(*at)->next) {
        if (*at == thread) {
            *at = thread->next;
            break;
        }
    }
    ended_instructions += thread->words[WORD_INSTRUCTIONS];
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&stacks, thread->depth, __ATOMIC_RELAXED);
}

void ticks_forking(void) {
    pthread_mutex_lock(&lock);
}

void ticks_fork_made(void) {
    pthread_mutex_unlock(&lock);
}

// Only this thread is left.
void ticks_forked(void) {
    struct heap_thread *thread = heap_thread();
    threads = thread;
    thread->next = NULL;
    stacks = thread->depth;
    pthread_mutex_unlock(&lock);
}
