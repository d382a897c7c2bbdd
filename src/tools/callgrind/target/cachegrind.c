// Counts instructions for each source line, and what caches and branch prediction would make of
// them; who calls whom is not followed.
#include <string.h>

#include "tools/callgrind/target/lines.h"
#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/functions.h"
#include "tools/callgrind/target/runs.h"
#include "tools/tools.h"

static void on_start(void) {
    const char *join = tool_option("vex-guest-chase");
    runs_modify_is_read = runs_first_branch_goes_on = true;
    runs_join_branches = join && strcmp(join, "yes") == 0;
    counts_start();
    counts_choose();
}

// cachegrind.h
enum { REQUEST_START = 0x43470000, REQUEST_STOP = 0x43470001 };

static bool on_request(const uint64_t words[6], uint64_t *result) {
    if (words[0] != REQUEST_START && words[0] != REQUEST_STOP)
        return false;
    counts_shared->on = words[0] == REQUEST_START;
    thread_update(tool_thread_state());
    *result = 0;
    return true;
}

static void on_block(struct tool_block *block, uint64_t pc) {
    run_block();
}

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (!run_is_open()) {
        struct code_place place = functions_at(insn->pc);
        run_open(block, insn->pc, place.function ? counts_function(place.function) : 0, false);
    }
    run_add(block, insn);
    bool ends = run_ends(insn);
    tool_keep_together(block, !ends);
    if (ends)
        run_close();
}

const struct tool tool_cachegrind = {
    .name = "cachegrind",
    .thread_size = sizeof(struct thread),
    .counts_by_address = true,
    .start = on_start,
    .block = on_block,
    .instruction = on_instruction,
    .block_end = run_end_block,
    .flushed = lines_flushed,
    COUNTS_HOOKS,
    .module = functions_add,
    .unmapped = functions_drop,
    .request = on_request,
};
