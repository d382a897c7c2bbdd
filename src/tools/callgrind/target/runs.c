#include "tools/callgrind/target/runs.h"

#include <string.h>

#include "base/x86.h"
#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/functions.h"
#include "tools/callgrind/target/joined.h"
#include "tools/callgrind/target/known.h"
#include "tools/callgrind/target/lines.h"
#include "tools/callgrind/target/simulate.h"
#include "tools/shared/instructions.h"

enum { RUN_MOST = TOOL_AMOUNT_MOST, NO_LINE = -1 };

bool runs_modify_is_read, runs_first_branch_goes_on, runs_have_callers, runs_join_branches;

// The run under construction.
static struct {
    bool open, skipped;
    uint64_t pc;
    uint32_t function;
    unsigned count, reads, writes;
    uint8_t lengths[RUN_MOST];
    struct tool_count inserted, inserted_reads, inserted_writes;
} run;

static uint64_t last_line; // of code, of the instruction before in the block

void run_block(void) {
    last_line = NO_LINE;
    known_block();
}

bool run_is_open(void) {
    return run.open;
}

uint32_t run_function(void) {
    return run.function;
}

enum counts_kind run_kind(void) {
    return run.skipped ? COUNTS_SKIPPED_EVENT : COUNTS_EVENT;
}

void run_open(struct tool_block *block, uint64_t pc, uint32_t function, bool skipped) {
    run.open = true;
    run.skipped = skipped;
    run.pc = pc;
    run.count = run.reads = run.writes = 0;
    run.function = function;
    static unsigned next_total;
    unsigned total = WORD_TOTALS + (runs_join_branches ? 0 : next_total++ % TOTALS);
    if (skipped)
        tool_insert_count_at(block, &run.inserted, total, WORD_SITE, COUNTS_SKIPPED * COUNTS_IDS);
    else
        tool_insert_count(block, &run.inserted, total);
    if (simulate_caches && runs_have_callers) {
        tool_insert_word_count(block, &run.inserted_reads, WORD_READS);
        tool_insert_word_count(block, &run.inserted_writes, WORD_WRITES);
    }
}

void run_close(void) {
    if (!run.open)
        return;
    run.open = false;
    tool_fill_count(&run.inserted, counts_run(run.pc, run.function, run.lengths, run.count),
                    run.count);
    if (simulate_caches && runs_have_callers) {
        tool_fill_count(&run.inserted_reads, 0, run.reads);
        tool_fill_count(&run.inserted_writes, 0, run.writes);
    }
}

void run_end_block(struct tool_block *block) {
    run_close();
    lines_end_block(block);
}

bool run_ends(const struct tool_insn *insn) {
    enum { ACCESSES = RUN_MOST - TOOL_ACCESSES };
    return insn->flow != TOOL_NEXT || run.count == RUN_MOST || run.reads > ACCESSES ||
           run.writes > ACCESSES;
}

bool run_is_locked(const struct tool_insn *insn) {
    return insn_atomicity(insn) != NOT_ATOMIC;
}

// ---- caches ------------------------------------------------------------------------------------

static uint32_t size_of(const struct tool_access *access) {
    return access->size < simulate_line ? access->size : simulate_line;
}

static bool is_read(const struct tool_access *access) {
    return !access->writes || (access->reads && runs_modify_is_read);
}

static uint32_t misses_of(const struct tool_insn *insn, const struct tool_access *access) {
    bool read = is_read(access);
    return counts_events(insn->pc, run.function, run_kind(), read ? COUNTS_D1MR : COUNTS_D1MW,
                         read ? COUNTS_DLMR : COUNTS_DLMW, size_of(access));
}

// The lines of the instruction that are not the one used last anyhow; each instruction, if uses are
// noted.
static void check_code(struct tool_block *block, const struct tool_insn *insn) {
    unsigned bits = simulate_code_bits;
    uint64_t first = insn->pc >> bits, last = (insn->pc + insn->size - 1) >> bits;
    uint32_t id = 0;
    for (uint64_t line = first; line <= last; line++) {
        if (simulate_uses ? line != first : line == last_line)
            continue;
        if (!id)
            id = counts_events(insn->pc, run.function, run_kind(), COUNTS_I1MR, COUNTS_ILMR,
                               insn->size);
        if (id)
            lines_insert_code_check(block, line, simulate_code, id);
    }
    last_line = last;
}

static void check_access(struct tool_block *block, const struct tool_insn *insn,
                         const struct tool_access *access) {
    uint32_t id = misses_of(insn, access);
    struct tool_access checked = *access;
    checked.size = size_of(access);
    if (id)
        lines_insert_check(block, &checked, simulate_data, id);
}

// The model has memory for registers whose bits are asked for by number: such a register is stored
// below the red zone, and a byte of it read. To change the bit is to read and write that byte, and
// then to read the whole.
static void check_bit(struct tool_block *block, const struct tool_insn *insn, bool changes,
                      unsigned *reads, unsigned *writes) {
    struct tool_access store = {.size = insn_opcode(insn).width,
                                .writes = true,
                                .base = RSP,
                                .index = -1,
                                .scale = 1,
                                .displacement = -RED_ZONE};
    struct tool_access load = store;
    load.writes = false;
    load.reads = true;
    check_access(block, insn, &store);
    for (unsigned i = 0; simulate_uses && i <= changes; i++)
        check_access(block, insn, &load);
    *writes = 1 + (changes && !runs_modify_is_read);
    *reads = 1 + (changes && runs_modify_is_read);
}

// Reads come before writes.
static unsigned check_accesses(struct tool_block *block, const struct tool_insn *insn) {
    unsigned reads = 0, writes = 0;
    bool changes;
    if (insn_is_bit_of_register(insn, &changes))
        check_bit(block, insn, changes, &reads, &writes);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < insn->access_count && reads + writes < 3; i++) {
            const struct tool_access *access = &insn->accesses[i];
            if (access->writes != pass)
                continue;
            if (i == 0 && insn_is_attempt(insn)) {
                struct tool_access read = *access;
                read.writes = false;
                check_access(block, insn, &read);
                reads++;
            }
            // What was read just now is there to be written.
            if (i > 0 || !insn_is_attempt(insn) || simulate_uses || simulate_write_back)
                check_access(block, insn, access);
            *(is_read(access) ? &reads : &writes) += 1;
        }
    }
    run.reads += reads;
    run.writes += writes;
    if (run.skipped && reads + writes)
        tool_insert_fast_call(block, TOOL_ALWAYS, simulate_skipped, reads | writes << 8);
    return reads << 4 | writes << 6;
}

// ---- string instructions -----------------------------------------------------------------------

struct repeat {
    uint32_t id;
    struct repeated insn;
    bool skipped;
    // With simulation, ids of events; 0: none.
    uint32_t source_misses, target_misses; // at rsi, at rdi
    uint32_t accesses;                     // reads; writes follow
    uint32_t branches;
    uint8_t reads, writes; // of a step
};

static void refer_steps(struct thread *thread, const struct repeat *repeat, uint64_t steps) {
    uint64_t source = tool_register(RSI), target = tool_register(RDI);
    int64_t step = tool_direction() * repeat->insn.width;
    *thread_counter(thread, repeat->accesses, 0, COUNTS_DR) += repeat->reads * steps;
    *thread_counter(thread, repeat->accesses, 1, COUNTS_DW) += repeat->writes * steps;
    thread->words[WORD_READS] += repeat->reads * steps;
    thread->words[WORD_WRITES] += repeat->writes * steps;
    for (uint64_t i = 0; i < steps; i++, source += step, target += step) {
        if (repeat->source_misses)
            simulate_data(repeat->source_misses, 0, thread, source);
        if (repeat->target_misses)
            simulate_data(repeat->target_misses, 0, thread, target);
    }
}

static void predict(struct thread *thread, uint32_t id, bool taken) {
    if (taken)
        simulate_taken(id, 0, thread);
    else
        simulate_not_taken(id, 0, thread);
}

// Before each step there is a branch by rcx, after each step of cmps and scas one by what was
// found. Both are taken to go on, but for the first kind if there are both, where the tools differ.
static void predict_steps(struct thread *thread, const struct repeat *repeat, uint64_t steps,
                          bool found) {
    bool compares = repeated_compares(&repeat->insn);
    bool goes_on = runs_first_branch_goes_on || !compares;
    for (uint64_t i = 0; i < steps; i++) {
        predict(thread, repeat->branches, goes_on);
        if (compares)
            predict(thread, repeat->branches, !found || i < steps - 1);
    }
    if (!found)
        predict(thread, repeat->branches, !goes_on);
}

// Each step counts as an instruction, and so does the look at rcx that ends them.
static void count_repeat(void *argument) {
    const struct repeat *repeat = argument;
    struct thread *thread = tool_thread_state();
    bool found;
    uint64_t steps = repeated_steps(&repeat->insn, &found);
    if (repeat->accesses)
        refer_steps(thread, repeat, steps);
    if (repeat->branches)
        predict_steps(thread, repeat, steps, found);
    steps -= found;
    uint64_t *counters = thread_counters(thread);
    if (repeat->skipped)
        counters[COUNTS_SKIPPED * COUNTS_IDS + *thread_site(thread)] += steps;
    else
        counters[repeat->id] += steps;
    thread->words[WORD_TOTALS] += steps;
}

static void show_repeat(struct tool_block *block, const struct tool_insn *insn) {
    struct repeat *repeat = tool_allocate(sizeof *repeat);
    *repeat = (struct repeat){.id = counts_site(insn->pc, run.function, COUNTS_REPEAT),
                              .insn = insn_repeated(insn),
                              .skipped = run.skipped};
    if (simulate_caches)
        repeat->accesses =
            counts_events(insn->pc, run.function, run_kind(), COUNTS_DR, COUNTS_DW, 0);
    for (unsigned i = 0; repeat->accesses && i < insn->access_count; i++) {
        const struct tool_access *access = &insn->accesses[i];
        uint32_t misses = misses_of(insn, access);
        *(access->base == RSI ? &repeat->source_misses : &repeat->target_misses) = misses;
        *(is_read(access) ? &repeat->reads : &repeat->writes) += 1;
    }
    if (simulate_branches)
        repeat->branches =
            counts_events(insn->pc, run.function, run_kind(), COUNTS_BC, COUNTS_BCM, 0);
    tool_insert_call(block, count_repeat, repeat);
}

// ---- branches ----------------------------------------------------------------------------------

struct counted_branch {
    uint32_t id;
    uint8_t opcode;
};

bool branch_uses_count(const struct tool_insn *insn) {
    return insn->size <= 3 && (insn->bytes[insn->size - 2] & 0xfc) == 0xe0;
}

// loopz and loopnz go by a flag besides.
bool branch_by_count_is_taken(uint8_t opcode) {
    uint64_t count = tool_register(RCX);
    bool zero = tool_flags() >> 6 & 1;
    if (opcode == 0xe3)
        return count == 0;
    return count != 1 && (opcode == 0xe2 || zero == (opcode == 0xe1));
}

static void count_branch(void *argument) {
    const struct counted_branch *branch = argument;
    predict(tool_thread_state(), branch->id, branch_by_count_is_taken(branch->opcode));
}

static void show_joined(struct tool_block *block, const struct tool_insn *insn,
                        const struct joined *joined) {
    struct code_place place = functions_at(joined->second);
    uint32_t function = place.function ? counts_function(place.function) : run.function;
    uint32_t second = counts_events(joined->second, function, run_kind(), COUNTS_BC, COUNTS_BCM, 0);
    uint32_t noted = second * JOINED_SECOND | (joined->is_behind ? JOINED_BEHIND : 0) |
                     (joined->common_taken ? JOINED_TAKEN : 0);
    uint32_t id = counts_events(insn->pc, run.function, run_kind(), COUNTS_BC, COUNTS_BCM, noted);
    if (!id || !second)
        return;
    tool_insert_fast_call(block, joined->is_behind ? TOOL_IF_NOT_TAKEN : TOOL_IF_TAKEN,
                          simulate_first, id);
    tool_insert_fast_call(block, joined->is_behind ? TOOL_IF_TAKEN : TOOL_IF_NOT_TAKEN,
                          simulate_only, id);
}

static void show_branch(struct tool_block *block, const struct tool_insn *insn) {
    uint8_t opcode = insn->bytes[insn->size - 2];
    struct joined joined;
    if (runs_join_branches && joined_look(insn, &joined)) {
        show_joined(block, insn, &joined);
        return;
    }
    uint32_t id = counts_events(insn->pc, run.function, run_kind(), COUNTS_BC, COUNTS_BCM, 0);
    if (!id)
        return;
    if (branch_uses_count(insn)) {
        struct counted_branch *branch = tool_allocate(sizeof *branch);
        *branch = (struct counted_branch){id, opcode};
        tool_insert_call(block, count_branch, branch);
    } else {
        tool_insert_fast_call(block, TOOL_IF_TAKEN, simulate_taken, id);
        tool_insert_fast_call(block, TOOL_IF_NOT_TAKEN, simulate_not_taken, id);
    }
}

static void show_branches(struct tool_block *block, const struct tool_insn *insn) {
    if (insn->flow == TOOL_BRANCH) {
        show_branch(block, insn);
    } else if (insn_is_attempt(insn)) {
        uint32_t id = counts_events(insn->pc, run.function, run_kind(), COUNTS_BC, COUNTS_BCM, 0);
        if (id)
            tool_insert_fast_call(block, TOOL_ALWAYS, simulate_not_taken, id);
    } else if ((insn->flow == TOOL_JUMP || insn->flow == TOOL_CALL) && !insn->target &&
               !known_target(insn)) {
        uint32_t id = counts_events(insn->pc, run.function, run_kind(), COUNTS_BI, COUNTS_BIM, 0);
        if (id)
            tool_insert_target_call(block, simulate_indirect, id);
    } else if (runs_join_branches && (insn->flow != TOOL_NEXT || insn_is_repeated(insn))) {
        if (insn->target)
            tool_insert_fast_call(block, TOOL_ALWAYS, simulate_jump, (uint32_t)known_beyond(insn));
        else
            tool_insert_fast_call(block, TOOL_ALWAYS, simulate_piece_end, 0);
    }
}

// ---- instructions ------------------------------------------------------------------------------

void run_add(struct tool_block *block, const struct tool_insn *insn) {
    unsigned accesses = 0;
    if (simulate_caches)
        check_code(block, insn);
    if (insn_is_repeated(insn))
        show_repeat(block, insn);
    else if (simulate_caches)
        accesses = check_accesses(block, insn);
    if (simulate_branches) {
        show_branches(block, insn);
        known_add(insn);
    }
    run.lengths[run.count++] = insn->size | accesses;
}
