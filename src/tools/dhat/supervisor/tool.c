// How the supervisor sees dhat. With --mode=native its hooks are those of a recorded run.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/dhat/supervisor/dhat.h"
#include "tools/dhat/supervisor/options.h"

static bool is_native(const struct tool_run *run) {
    const struct dhat_state *state = run->state;
    return state->is_native;
}

static void *dhat_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct dhat_state *state = base_allocate(sizeof *state);
    *state = (struct dhat_state){
        .recorded = {.tool = &dhat_native_hooks,
                     .out_file = option_text(values, "dhat-out-file"),
                     .names.depth = (size_t)option_number(values, "num-callers")},
        .is_native = option_is(values, "mode", "native"),
        .is_heap = !option_is(values, "mode", "copy") && !option_is(values, "mode", "ad-hoc"),
    };
    setup->symbols->keep_unmapped = true;
    if (!state->is_native)
        return state;
    if (recorded_static_reason(setup))
        tool_refuse(setup, "--mode=native is for dynamically linked programs; --mode=heap serves "
                           "all");
    // Frames below main, and alloc functions, are taken off later.
    recorded_settings(&state->recorded, setup, option_number(values, "num-callers") + 40, NULL);
    return state;
}

static void dhat_release(void *of) {
    struct dhat_state *state = of;
    recorded_release(&state->recorded);
    free(state);
}

static bool dhat_knows(const void *of, enum budget_kind kind) {
    const struct dhat_state *state = of;
    return state->is_heap && kind != BUDGET_GROWTH;
}

// ---- what the engine counts ----

// The file of a process; its `own`.
struct counts {
    int fd;
};

static void detach(struct followed *process) {
    struct counts *counts = process->own;
    if (counts)
        close(counts->fd);
    free(counts);
    process->own = NULL;
}

static bool take_message(struct tool_run *run, struct followed *process,
                         const struct wire_message *message) {
    if (is_native(run))
        return recorded_message(run, process, message);
    if (message->type != WIRE_FILE)
        return false;
    struct counts *counts = base_allocate(sizeof *counts);
    detach(process);
    counts->fd = fd_move_high(message->fd);
    process->own = counts;
    return true;
}

static void report(struct tool_run *run, struct followed *process) {
    const struct counts *counts = process->own;
    if (is_native(run))
        recorded_ended(run, process);
    else if (counts)
        dhat_report(run, process, counts->fd);
    detach(process);
}

// ---- --mode=native ----

static void note_start(struct tool_run *run) {
    if (is_native(run))
        recorded_started(run);
}

// Only natively is a process attached to.
static void note_attached(struct tool_run *run) {
    if (is_native(run))
        recorded_attached(run);
}

static void note_program(struct tool_run *run, struct followed *process) {
    if (is_native(run))
        recorded_began(run, process);
}

static void note_mapping(struct tool_run *run, struct followed *process,
                         const struct wire_module_map *map) {
    if (is_native(run))
        recorded_mapped(run, process, map);
}

static bool take_request(struct tool_run *run, const char *request, struct text *answer) {
    return is_native(run) && recorded_request(run, request, answer);
}

static int64_t next_drain(struct tool_run *run) {
    return is_native(run) ? recorded_timeout(run) : -1;
}

static void drain(struct tool_run *run) {
    if (is_native(run))
        recorded_drain(run);
}

static void finish(struct tool_run *run) {
    if (is_native(run))
        recorded_finish(run);
}

static const struct tool_request requests[] = {
    {"leaks", NULL, "search for blocks that no pointer refers to"},
    {0},
};

const struct supervisor_tool supervisor_dhat = {
    .name = "dhat",
    .help = "profile of how heap blocks are used",
    .takes = TOOL_TAKES_RESULTS,
    .options = dhat_options,
    .requests = requests,
    .settings = dhat_settings,
    .release = dhat_release,
    .knows = dhat_knows,
    .enter = recorded_enter,
    .started = note_start,
    .attached = note_attached,
    .message = take_message,
    .mapped = note_mapping,
    .began = note_program,
    .ended = report,
    .request = take_request,
    .timeout = next_drain,
    .drain = drain,
    .finish = finish,
};
