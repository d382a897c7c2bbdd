// Counts instructions for each function and source line, and follows who calls whom.
//
// Runs of instructions are counted where they are begun, by two additions in place. At calls and
// jumps that may lead into another function the site is noted; the function's first instruction
// then pushes a frame, and returns pop it (events.h). What belongs to which name and line is worked
// out by the supervisor from addresses.
#include <string.h>

#include "tools/callgrind/collect.h"
#include "tools/callgrind/counts.h"
#include "tools/callgrind/functions.h"
#include "tools/callgrind/runs.h"
#include "tools/callgrind/simulate.h"
#include "tools/tools.h"

enum { RSP = 4 };

static struct code_place place; // where the current run, or a block that has none yet, begins
static bool collects_jumps;
static bool stack_moved; // in the current block, rsp was loaded from somewhere else

// Code without symbols belongs to what is called there, else to who runs it first.
static uint32_t function_without_symbol(uint64_t pc) {
    const struct thread *thread = tool_thread_state();
    return thread_was_called(thread) || !thread->function ? counts_function(pc) : thread->function;
}

static uint32_t current_function(uint64_t pc) {
    return place.function ? counts_function(place.function) : function_without_symbol(pc);
}

static bool is_skipped(void) {
    return place.marks.events & FUNCTION_SKIPPED;
}

static void on_block(struct tool_block *block, uint64_t pc) {
    stack_moved = false;
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
        tool_insert_quick_call(block, TOOL_IF_WORD, event_maybe_enter_quick, event_maybe_enter,
                               counts_function(pc));
}

// ---- instructions that lead elsewhere ----------------------------------------------------------

static uint32_t site_of(const struct tool_insn *insn, unsigned kind) {
    return counts_site(insn->pc, run_function(), kind);
}

static void note_jump(struct tool_block *block, const struct tool_insn *insn, uint32_t resolves) {
    if (is_skipped()) {
        tool_insert_fast_call(block, TOOL_ALWAYS, event_skipped_jump, resolves);
        return;
    }
    uint32_t site = site_of(insn, COUNTS_JUMP);
    if (insn->target || place.function)
        tool_insert_set(block, WORD_SITE, SITE_LAST, site);
    tool_insert_set(block, WORD_SITE, SITE_JUMP, site | resolves);
}

static void show_call(struct tool_block *block, const struct tool_insn *insn) {
    if (is_skipped())
        tool_insert_set(block, WORD_SITE, SITE_JUMP, 0);
    else
        tool_insert_set(block, WORD_SITE, SITE_LAST, site_of(insn, COUNTS_CALL));
    if (!insn->target)
        return;
    struct code_place callee = functions_at(insn->target);
    if (!callee.plt && callee.function != insn->target)
        tool_insert_quick_call(block, TOOL_ALWAYS, event_enter_from_call_quick,
                               event_enter_from_call, counts_function(insn->target));
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

static void show_jump(struct tool_block *block, const struct tool_insn *insn) {
    if (place.plt)
        return; // what is reached counts as called from where the PLT was called
    if (!insn->target) {
        bool resolves = place.resolves && is_jump_through_r11(insn);
        if (collects_jumps && !resolves && !stack_moved && !is_skipped())
            tool_insert_target_call(block, event_jumped, site_of(insn, COUNTS_JUMP));
        note_jump(block, insn, resolves ? SITE_RESOLVES : 0);
        if (stack_moved && !resolves)
            tool_insert_fast_call(block, TOOL_ALWAYS, event_stack_moved, 0);
        return;
    }
    struct code_place to = functions_at(insn->target);
    if (to.plt || to.function == insn->target) {
        note_jump(block, insn, 0);
        return;
    }
    if (collects_jumps && !is_skipped())
        collect_jump(block, insn);
    if (to.function && to.function != place.function)
        tool_insert_fast_call(block, insn->flow == TOOL_BRANCH ? TOOL_IF_TAKEN : TOOL_ALWAYS,
                              event_cross, counts_function(to.function));
}

static uint32_t popped_by(const struct tool_insn *insn) {
    uint16_t more = 0;
    if (insn->size >= 3 && insn->bytes[insn->size - 3] == 0xc2)
        memcpy(&more, insn->bytes + insn->size - 2, sizeof more);
    return 8 + more;
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

// ---- hooks -------------------------------------------------------------------------------------

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (!run_is_open()) {
        place = functions_at(insn->pc);
        run_open(block, insn->pc, current_function(insn->pc), place.plt || is_skipped());
    }
    run_add(block, insn);
    collect_instruction(block, insn, run_function());
    stack_moved |= moves_stack(insn);
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
    bool ends = run_ends(insn);
    tool_keep_together(block, !ends);
    if (ends)
        run_close();
}

static void on_signal(int number, uint64_t frame, uint64_t frame_end, uint64_t alternate_stack) {
    thread_interrupted(tool_thread_state(), tool_register(RSP));
}

static void on_signal_returned(uint64_t frame) {
    thread_continued(tool_thread_state());
}

static void on_start(void) {
    const char *jumps = tool_option("collect-jumps");
    collects_jumps = jumps && strcmp(jumps, "yes") == 0;
    runs_have_callers = true;
    counts_start();
    counts_choose();
    collect_start();
    if (collect_system_calls()) {
        tool_callgrind.before_system_call = collect_before_call;
        tool_callgrind.after_system_call = collect_after_call;
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

// on_start adds hooks for system calls if they are wanted.
struct tool tool_callgrind = {
    .name = "callgrind",
    .thread_size = sizeof(struct thread),
    .start = on_start,
    .end = simulate_end,
    .block = on_block,
    .instruction = on_instruction,
    .block_done = run_close,
    .thread_started = counts_thread_started,
    .thread_ended = counts_thread_ended,
    .forking = counts_forking,
    .forked = counts_forked,
    .module = functions_add,
    .unmapped = functions_drop,
    .signal_delivered = on_signal,
    .signal_returned = on_signal_returned,
    .request = on_request,
};
