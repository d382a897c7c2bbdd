// exp-bbv: basic block vectors, as Valgrind's tool of this name writes them.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tools/bbv/target/target.h"

uint64_t bbv_interval_size;
bool bbv_wants_vectors;

static struct counts *by_number[BBV_THREADS];
static bool may_begin; // at the next instruction, which the cache lock guards
static bool is_searched;

// ---- code --------------------------------------------------------------------------------------

struct repeated {
    uint64_t pc;
    uint64_t mask; // of rcx or ecx
    bool stops_early;
    bool stops_if_equal;
};

static uint64_t count_left(const struct repeated *repeated) {
    return tool_register(1) & repeated->mask;
}

static void before_repeated(void *of) {
    const struct repeated *repeated = of;
    struct thread *thread = tool_thread_state();
    bbv_count_repeated(thread, repeated->pc);
    thread->rep_before = count_left(repeated);
    if (repeated->stops_early || !thread->rep_before)
        return;
    thread->counts->totals->reps += thread->rep_before;
    bbv_blocks_number(bbv_blocks_find(repeated->pc));
}

static void after_search(void *of) {
    enum { ZERO_FLAG = 0x40 };
    const struct repeated *repeated = of;
    struct thread *thread = tool_thread_state();
    uint64_t left = count_left(repeated), steps = thread->rep_before - left;
    bool is_equal = tool_flags() & ZERO_FLAG;
    // The step that finds no more to do is one as well.
    if (steps && is_equal != repeated->stops_if_equal)
        steps++;
    if (steps < 2)
        return;
    thread->counts->totals->reps += steps - 1;
    bbv_blocks_number(bbv_blocks_find(repeated->pc));
}

static void before_lods(void *of) {
    const struct repeated *repeated = of;
    bbv_count_repeated(tool_thread_state(), repeated->pc);
}

static struct repeated *last_search; // the instruction before this one

static void insert_repeated(struct tool_block *block, const struct tool_insn *insn,
                            enum instruction_kind kind) {
    struct repeated *repeated = tool_allocate(sizeof *repeated);
    bool narrow = insn->access_count && insn->accesses[0].narrow;
    *repeated = (struct repeated){.pc = insn->pc,
                                  .mask = narrow ? UINT32_MAX : UINT64_MAX,
                                  .stops_early = kind == KIND_SEARCH};
    for (unsigned i = 0; i < insn->size; i++)
        if (insn->bytes[i] == 0xf2 || insn->bytes[i] == 0xf3) {
            repeated->stops_if_equal = insn->bytes[i] == 0xf2;
            break;
        }
    tool_insert_call(block, kind == KIND_LODS ? before_lods : before_repeated, repeated);
    is_searched = kind == KIND_SEARCH;
    last_search = repeated;
}

// Valgrind warns of values that it does not simulate, and ends the block to do so.
static void before_fldcw(void *of) {
    enum { MASKED = 0x3f, EXTENDED = 0x300 };
    const struct tool_access *access = of;
    struct thread *thread = tool_thread_state();
    uint16_t value = 0;
    thread->counts->totals->fldcws++;
    if (tool_read(&value, tool_access_address(access), sizeof value) == 0)
        thread->is_cut = (value & MASKED) != MASKED || (value & EXTENDED) != EXTENDED;
}

static void insert_fldcw(struct tool_block *block, const struct tool_insn *insn) {
    if (!insn->access_count)
        return;
    struct tool_access *access = tool_allocate(sizeof *access);
    *access = insn->accesses[0];
    tool_insert_call(block, before_fldcw, access);
}

static void on_block(struct tool_block *block, uint64_t pc) {
    may_begin = true;
    is_searched = false;
}

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (is_searched)
        tool_insert_call(block, after_search, last_search);
    is_searched = false;
    if (may_begin)
        tool_insert_quick_call(block, TOOL_ALWAYS, bbv_count_quickly, bbv_count_arrival,
                               bbv_blocks_look(insn->pc));
    enum instruction_kind kind = bbv_blocks_kind(insn);
    may_begin = kind != KIND_PLAIN && kind != KIND_LODS;
    if (insn->repeats) {
        insert_repeated(block, insn, kind);
        return;
    }
    if (kind == KIND_FLDCW)
        insert_fldcw(block, insn);
    struct tool_count count = {0};
    tool_insert_word_count(block, &count, POSITION_WORD);
    tool_fill_count(&count, 0, 1);
}

// The engine shows no instructions of a request. Valgrind counts one.
static bool on_request(const uint64_t words[6], uint64_t *result) {
    struct thread *thread = tool_thread_state();
    ++*thread->position;
    return false;
}

// ---- threads -----------------------------------------------------------------------------------

static struct counts *make_counts(uint32_t number) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    struct counts *counts = calloc(1, sizeof *counts);
    uint64_t *by_block =
        mmap(NULL, BLOCKS * sizeof *by_block, PROT_READ | PROT_WRITE, flags, -1, 0);
    uint32_t *touched = mmap(NULL, BLOCKS * sizeof *touched, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (!counts || by_block == MAP_FAILED || touched == MAP_FAILED)
        tool_give_up("exp-bbv: no memory for the counts of a thread");
    *counts = (struct counts){.totals = &bbv_totals->threads[number],
                              .by_block = by_block,
                              .touched = touched,
                              .thread = number};
    return counts;
}

static void on_thread_started(void) {
    struct thread *thread = tool_thread_state();
    uint32_t number = (uint32_t)tool_thread_number();
    thread->position = tool_thread_words() + POSITION_WORD;
    if (number >= BBV_THREADS) { // counted, but without an output
        bbv_totals->is_incomplete = 1;
        number = 0;
        thread->counts = make_counts(number);
        return;
    }
    if (!by_number[number])
        by_number[number] = make_counts(number);
    thread->counts = by_number[number];
}

static void on_thread_ended(void) {
    bbv_count_position(tool_thread_state());
}

static void on_fork_made(void) {
    bbv_records_unlock();
}

static void on_forked(void) {
    bbv_records_fork();
    for (unsigned i = 0; i < BBV_THREADS; i++)
        if (by_number[i])
            by_number[i]->totals = &bbv_totals->threads[i];
    bbv_records_unlock();
}

// The child runs on the memory of its parent, where it must not count. The engine puts the parent's
// state back.
static void on_vforked(void) {
    static struct counts *nobodys;
    struct thread *thread = tool_thread_state();
    if (!nobodys)
        nobodys = make_counts(0);
    thread->counts = nobodys;
}

static void on_vfork_made(void) {
    struct thread *thread = tool_thread_state();
    *thread->position = 0;
}

// ---- the run -----------------------------------------------------------------------------------

static void on_start(void) {
    const char *size = tool_option("interval-size");
    const char *only = tool_option("instr-count-only");
    bbv_interval_size = size ? strtoull(size, NULL, 10) : 100000000;
    bbv_wants_vectors = !only || strcmp(only, "yes") != 0;
    bbv_records_start();
    bbv_blocks_start();
}

const struct tool tool_exp_bbv = {
    .name = "exp-bbv",
    .thread_size = sizeof(struct thread),
    .counts_by_address = true,
    .start = on_start,
    .end = on_thread_ended,
    .block = on_block,
    .instruction = on_instruction,
    .thread_started = on_thread_started,
    .thread_ended = on_thread_ended,
    .forking = bbv_records_lock,
    .fork_made = on_fork_made,
    .forked = on_forked,
    .vforking = on_thread_ended,
    .vforked = on_vforked,
    .vfork_made = on_vfork_made,
    .request = on_request,
};
