// Counts instructions for each function and source line, and follows who calls whom.
//
// Runs of instructions are counted where they are begun, by two additions in place. At calls and
// jumps that may lead into another function the site is noted; the function's first instruction
// then pushes a frame, and returns pop it (events.h). What belongs to which name and line is worked
// out by the supervisor from addresses.
#include <string.h>

#include "base/x86.h"
#include "tools/callgrind/target/lines.h"
#include "tools/callgrind/target/collect.h"
#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/functions.h"
#include "tools/callgrind/target/owners.h"
#include "tools/callgrind/target/runs.h"
#include "tools/callgrind/target/simulate.h"
#include "tools/tools.h"

static struct code_place place; // where the current run, or a block that has none yet, begins
static bool collects_jumps;
static bool stack_moved; // in the current block, rsp was loaded from somewhere else
static bool in_frame;    // below what its function has pushed on the stack
static bool table_read;  // in the current block, an entry of a table of distances was read
static uint32_t owner;   // whose the code of the current block is; 0: not known yet
static bool branched;    // the instruction before, in the current block, was a branch
static uint64_t end;     // where the block goes on; 0: it does not

static bool is_skipped(void) {
    return place.marks.events & FUNCTION_SKIPPED;
}

// ---- code without symbols (owners.h) -----------------------------------------------------------

// Whose code it is that is reached here for the first time, and not by a direct jump or call.
static uint32_t newcomer(uint64_t pc) {
    const struct thread *thread = tool_thread_state();
    uint32_t expected = owner_expected(pc);
    if (thread_was_called(thread) || !thread->function ||
        (!expected && thread_jumped_into(thread, place.object)))
        return counts_function(pc);
    if (!thread_is_alone(thread))
        return thread->function;
    // The function that runs is in others' code already.
    uint32_t from = counts_ids[thread_site(thread)[SITE_JUMP] & ~SITE_RESOLVES].function;
    return expected ? expected : from ? from : thread->function;
}

static uint32_t current_function(uint64_t pc) {
    if (place.function)
        return counts_function(place.function);
    return place.plt ? 0 : owner_claim(pc, owner);
}

static void begin_unnamed(struct tool_block *block, uint64_t pc) {
    uint32_t function = counts_function(pc);
    owner = owner_at(pc);
    if (!owner)
        owner = owner_claim(pc, newcomer(pc));
    events_owner[function] = owner;
    tool_insert_quick_call(block, TOOL_IF_WORD, event_maybe_enter_quick, event_maybe_enter,
                           function);
    if (owner_is_doubtful(pc))
        tool_insert_quick_call(block, TOOL_ALWAYS, event_cross_quick, event_cross, owner);
}

static bool is_unnamed(uint64_t pc) {
    return !place.plt && (!place.function || pc >= place.end);
}

// Where code without symbols follows that the instruction goes on to; 0: there is none.
static uint64_t unnamed_behind(const struct tool_insn *insn) {
    uint64_t next = insn->pc + insn->size;
    bool goes_on =
        insn->flow == TOOL_NEXT || insn->flow == TOOL_BRANCH || insn->flow == TOOL_SYSTEM;
    return goes_on && is_unnamed(next) ? next : 0;
}

// It goes on to another's code.
static void show_going_on(struct tool_block *block, const struct tool_insn *insn, uint32_t other) {
    enum tool_condition condition = TOOL_ALWAYS;
    if (insn->flow == TOOL_BRANCH && branch_uses_count(insn))
        other = 0;
    else if (insn->flow == TOOL_BRANCH)
        condition = TOOL_IF_NOT_TAKEN;
    tool_insert_quick_call(block, condition, event_cross_quick, event_cross, other);
}

// Who is called may not return; if so, to code that is counted as it should be.
static void expect_return(struct tool_block *block, const struct tool_insn *insn) {
    uint64_t next = insn->pc + insn->size;
    uint32_t other = is_unnamed(next) ? owner_at(next) : run_function();
    if (!other)
        owner_expect(next, run_function());
    else if (other != run_function())
        tool_insert_quick_call(block, TOOL_ALWAYS, event_cross_quick, event_cross, 0);
}

// While a skipped function runs, its caller's costs are counted.
static uint32_t claimant(void) {
    const struct thread *thread = tool_thread_state();
    return is_skipped() && thread->function ? thread->function : run_function();
}

static void show_crossing(struct tool_block *block, const struct tool_insn *insn,
                          const struct code_place *to) {
    enum tool_condition condition = insn->flow == TOOL_BRANCH ? TOOL_IF_TAKEN : TOOL_ALWAYS;
    uint32_t other =
        to->function ? counts_function(to->function) : owner_claim(insn->target, claimant());
    if (other == run_function())
        return;
    if (insn->flow == TOOL_BRANCH && branch_uses_count(insn)) {
        condition = TOOL_ALWAYS;
        other = 0;
    }
    tool_insert_quick_call(block, condition, event_cross_quick, event_cross, other);
}

// mov rsp, register or memory
static bool moves_stack(const struct tool_insn *insn) {
    const uint8_t *bytes = insn->bytes;
    if (insn->size < 3 || (bytes[0] & 0xf8) != 0x48)
        return false;
    uint8_t modrm = bytes[2];
    if (bytes[1] == 0x89)
        return (modrm & 0xc7) == 0xc4 && !(bytes[0] & 1);
    return bytes[1] == 0x8b && (modrm & 0x38) == 0x20 && !(bytes[0] & 4);
}

// An indirect jump in code without symbols may be a switch, or lead on to another function. The
// former is frequent and needs no event: so is taken what comes while the function has something on
// the stack, or goes by a table of distances.
static bool is_switch(void) {
    return in_frame || table_read;
}

// Whether the block begins where the thread's innermost function has something on the stack.
static bool begins_in_frame(void) {
    const struct thread *thread = tool_thread_state();
    return !thread_was_called(thread) && thread->top[-1].sp != tool_register(RSP);
}

static void look_for_switch(const struct tool_insn *insn) {
    const uint8_t *bytes = insn->bytes + ((insn->bytes[0] & 0xf0) == 0x40);
    uint8_t opcode = bytes[0] & 0xf8, modrm = insn->size > 1 ? bytes[1] : 0;
    bool adds = (bytes[0] & 0xfd) == 0x81 && insn->size > 3 && (modrm & 0xc7) == 0xc4;
    bool loads_distance = bytes[0] == 0x63 && insn->access_count && insn->accesses[0].index >= 0 &&
                          insn->accesses[0].scale == 4;
    table_read |= loads_distance;
    if (opcode == 0x50 || (adds && (modrm & 0x38) == 0x28 && bytes[2] < 0x80))
        in_frame = true; // push, sub
    else if (opcode == 0x58 || bytes[0] == 0xc9 || adds || moves_stack(insn) ||
             (bytes[0] == 0x8d && (modrm & 0x38) == 0x20))
        in_frame = false; // pop, leave, add, lea
}

static void on_block(struct tool_block *block, uint64_t pc) {
    stack_moved = table_read = branched = false;
    owner = 0;
    in_frame = begins_in_frame();
    end = 0;
    run_block();
    collect_block(block);
    place = functions_at(pc);
    if (place.plt)
        return;
    if (place.function == pc && is_skipped())
        counts_site(pc, counts_function(pc), COUNTS_JUMP);
    if (place.function == pc)
        tool_insert_quick_call(block, TOOL_ALWAYS,
                               counts_many_events ? event_enter_quick_events : event_enter_quick,
                               event_enter, counts_function(pc));
    else if (!place.function)
        begin_unnamed(block, pc);
}

// ---- instructions that lead elsewhere ----------------------------------------------------------

static uint32_t site_of(const struct tool_insn *insn, unsigned kind) {
    return counts_site(insn->pc, run_function(), kind);
}

static void note_jump(struct tool_block *block, const struct tool_insn *insn, bool to_plt,
                      uint32_t resolves) {
    if (is_skipped()) {
        tool_insert_fast_call(block, TOOL_ALWAYS, event_skipped_jump, resolves);
        return;
    }
    uint32_t site =
        to_plt ? counts_site_to_plt(insn->pc, run_function()) : site_of(insn, COUNTS_JUMP);
    if (insn->target || place.function || !is_switch())
        tool_insert_set(block, WORD_SITE, SITE_LAST, site);
    tool_insert_set(block, WORD_SITE, SITE_JUMP, site | resolves);
}

// A call of what no symbol says to begin there.
static void show_call_of_unnamed(struct tool_block *block, uint64_t target) {
    uint32_t function = counts_function(target);
    events_owner[function] = owner_claim(target, function);
    if (events_owner[function] == function)
        tool_insert_quick_call(block, TOOL_ALWAYS, event_enter_from_call_quick,
                               event_enter_from_call, function);
    else
        tool_insert_fast_call(block, TOOL_ALWAYS, event_enter_others_from_call, function);
}

static void show_call(struct tool_block *block, const struct tool_insn *insn) {
    expect_return(block, insn);
    if (is_skipped())
        tool_insert_set(block, WORD_SITE, SITE_JUMP, 0);
    else
        tool_insert_set(block, WORD_SITE, SITE_LAST, site_of(insn, COUNTS_CALL));
    if (!insn->target)
        return;
    struct code_place callee = functions_at(insn->target);
    if (callee.plt || callee.function == insn->target)
        return;
    if (callee.function)
        tool_insert_quick_call(block, TOOL_ALWAYS, event_enter_from_call_quick,
                               event_enter_from_call, counts_function(insn->target));
    else
        show_call_of_unnamed(block, insn->target);
}

static bool is_jump_through_r11(const struct tool_insn *insn) {
    return insn->size >= 3 && memcmp(insn->bytes + insn->size - 3, "\x41\xff\xe3", 3) == 0;
}

// ---- --collect-jumps ---------------------------------------------------------------------------

struct counted_branch {
    uint32_t id;
    uint8_t opcode;
};

static void count_if_taken(void *argument) {
    const struct counted_branch *branch = argument;
    if (branch_by_count_is_taken(branch->opcode))
        event_taken(branch->id, 0, tool_thread_state());
}

// How often a branch is met is known from its run.
static void collect_jump(struct tool_block *block, const struct tool_insn *insn) {
    bool conditional = insn->flow == TOOL_BRANCH;
    uint32_t id = counts_branch(insn->pc, run_function(), insn->target, conditional);
    if (!id || !conditional)
        return;
    if (branch_uses_count(insn)) {
        struct counted_branch *branch = tool_allocate(sizeof *branch);
        *branch = (struct counted_branch){id, insn->bytes[insn->size - 2]};
        tool_insert_call(block, count_if_taken, branch);
    } else {
        tool_insert_fast_call(block, TOOL_IF_TAKEN, event_taken, id);
    }
}

// A function begins behind the branch.
static bool enters_behind(const struct tool_insn *insn) {
    uint64_t next = insn->pc + insn->size;
    return (!place.function || next == place.end) && functions_at(next).function == next;
}

static void show_jump(struct tool_block *block, const struct tool_insn *insn) {
    if (place.plt)
        return; // what is reached counts as called from where the PLT was called
    if (!insn->target) {
        bool resolves = place.resolves && is_jump_through_r11(insn);
        if (collects_jumps && !resolves && !stack_moved && !is_skipped())
            tool_insert_target_call(block, event_jumped, site_of(insn, COUNTS_JUMP));
        note_jump(block, insn, false, resolves ? SITE_RESOLVES : 0);
        if (stack_moved && !resolves)
            tool_insert_fast_call(block, TOOL_ALWAYS, event_stack_moved, 0);
        return;
    }
    struct code_place to = functions_at(insn->target);
    if (to.plt || to.function == insn->target) {
        note_jump(block, insn, to.plt, 0);
        return;
    }
    if (insn->flow == TOOL_BRANCH && enters_behind(insn))
        note_jump(block, insn, false, 0);
    if (collects_jumps && !is_skipped())
        collect_jump(block, insn);
    show_crossing(block, insn, &to);
}

static uint32_t popped_by(const struct tool_insn *insn) {
    uint16_t more = 0;
    if (insn->size >= 3 && insn->bytes[insn->size - 3] == 0xc2)
        memcpy(&more, insn->bytes + insn->size - 2, sizeof more);
    return 8 + more;
}

// A function goes on in another that has a symbol: as Valgrind has it, which knows only where its
// blocks begin, that is a call if it happens behind a branch.
static void fall_into(struct tool_block *block, uint64_t pc, uint32_t function) {
    if (function == owner)
        return;
    if (place.function == pc && branched)
        tool_insert_quick_call(block, TOOL_ALWAYS,
                               counts_many_events ? event_enter_quick_events : event_enter_quick,
                               event_enter, function);
    else
        tool_insert_quick_call(block, TOOL_ALWAYS, event_cross_quick, event_cross, function);
}

// ---- hooks -------------------------------------------------------------------------------------

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (!run_is_open()) {
        place = functions_at(insn->pc);
        if (owner && place.function)
            fall_into(block, insn->pc, counts_function(place.function));
        run_open(block, insn->pc, current_function(insn->pc), place.plt || is_skipped());
        owner = run_function();
    }
    run_add(block, insn);
    collect_instruction(block, insn, run_function());
    stack_moved |= moves_stack(insn);
    look_for_switch(insn);
    branched = insn->flow == TOOL_BRANCH;
    switch (insn->flow) {
    case TOOL_CALL:
        show_call(block, insn);
        break;
    case TOOL_JUMP:
    case TOOL_BRANCH:
        show_jump(block, insn);
        break;
    case TOOL_RETURN:
        tool_insert_quick_call(block, TOOL_ALWAYS,
                               counts_many_events ? event_leave_quick_events : event_leave_quick,
                               event_leave, popped_by(insn));
        break;
    default:
        break;
    }
    end = unnamed_behind(insn);
    uint32_t other = end ? owner_at(end) : 0;
    bool goes_astray = other && other != owner;
    if (goes_astray)
        show_going_on(block, insn, other);
    bool ends = run_ends(insn) || goes_astray;
    tool_keep_together(block, !ends);
    if (ends)
        run_close();
}

static void on_block_end(struct tool_block *block) {
    run_end_block(block);
    if (end)
        owner_claim(end, owner);
}

static void on_signal(int number, uint64_t frame, uint64_t frame_end, uint64_t alternate_stack) {
    thread_interrupted(tool_thread_state(), tool_register(RSP));
}

static void on_signal_returned(uint64_t frame) {
    thread_continued(tool_thread_state());
}

static struct tool callgrind;

static void on_start(void) {
    const char *jumps = tool_option("collect-jumps");
    collects_jumps = jumps && strcmp(jumps, "yes") == 0;
    runs_have_callers = true;
    counts_start();
    counts_choose();
    collect_start();
    if (collect_system_calls()) {
        callgrind.before_system_call = collect_before_call;
        callgrind.after_system_call = collect_after_call;
    }
    if (collects_jumps)
        counts_collect_jumps();
}

// callgrind.h
enum {
    REQUEST_DUMP = 0x43540000,
    REQUEST_ZERO = 0x43540001,
    REQUEST_TOGGLE_COLLECT = 0x43540002,
    REQUEST_DUMP_AT = 0x43540003,
    REQUEST_START_INSTRUMENTATION = 0x43540004,
    REQUEST_STOP_INSTRUMENTATION = 0x43540005,
};

static void dump_at(uint64_t text) {
    char why[256] = "Client Request: ";
    size_t at = strlen(why);
    while (at < sizeof why - 1 && tool_read(&why[at], text++, 1) == 0 && why[at])
        at++;
    why[at] = 0;
    counts_dump(true, why);
}

static bool on_request(const uint64_t words[6], uint64_t *result) {
    struct thread *thread = tool_thread_state();
    *result = 0;
    switch (words[0]) {
    case REQUEST_DUMP:
        counts_dump(true, "Client Request");
        return true;
    case REQUEST_DUMP_AT:
        dump_at(words[1]);
        return true;
    case REQUEST_ZERO:
        counts_dump(false, "");
        return true;
    case REQUEST_TOGGLE_COLLECT:
        thread->collects = !thread->collects;
        break;
    case REQUEST_START_INSTRUMENTATION:
    case REQUEST_STOP_INSTRUMENTATION:
        counts_shared->on = words[0] == REQUEST_START_INSTRUMENTATION;
        break;
    default:
        return false;
    }
    thread_update(thread);
    return true;
}

static struct tool callgrind = {
    .name = "callgrind",
    .thread_size = sizeof(struct thread),
    .counts_by_address = true,
    .start = on_start,
    .end = simulate_end,
    .block = on_block,
    .instruction = on_instruction,
    .block_end = on_block_end,
    .flushed = lines_flushed,
    COUNTS_HOOKS,
    .module = functions_add,
    .unmapped = functions_drop,
    .signal_delivered = on_signal,
    .signal_returned = on_signal_returned,
    .request = on_request,
};
// The table of tools takes it for constant; on_start adds hooks for system calls if they are
// wanted.
extern const struct tool tool_callgrind __attribute__((alias("callgrind")));
