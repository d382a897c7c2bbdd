// How the supervisor sees memcheck: its hooks call what is in findings.h.
#include "supervisor/tool.h"
#include "tools/memcheck/supervisor/findings.h"
#include "tools/memcheck/supervisor/options.h"
#include "tools/memcheck/supervisor/settings.h"

static struct findings *findings_of(const struct tool_run *run) {
    return ((struct memcheck *)run->state)->findings;
}

static bool open_run(struct tool_run *run) {
    struct memcheck *memcheck = run->state;
    memcheck->findings = findings_new(run, &memcheck->settings);
    return true;
}

static bool take_message(struct tool_run *run, struct followed *process,
                         const struct wire_message *message) {
    return findings_take(findings_of(run), process, message);
}

static void note_mapping(struct tool_run *run, struct followed *process,
                         const struct wire_module_map *map) {
    findings_mapped(findings_of(run), process->pid);
}

static void note_unmapping(struct tool_run *run, struct followed *process) {
    findings_mapped(findings_of(run), process->pid);
}

static void note_program(struct tool_run *run, struct followed *process) {
    findings_begin(findings_of(run), process->pid);
}

static void note_fork(struct tool_run *run, const struct followed *parent, struct followed *child) {
    if (parent)
        findings_fork(findings_of(run), parent->pid, child->pid);
}

static void note_end(struct tool_run *run, struct followed *process) {
    findings_finish(findings_of(run), process);
}

static bool has_failed(struct tool_run *run) {
    return findings_main_failed(findings_of(run));
}

static int number_of_thread(struct tool_run *run, int pid, int tid) {
    return findings_thread(findings_of(run), pid, tid);
}

static bool take_command(struct tool_run *run, const struct followed *process, const char *command,
                         struct text *answer) {
    return findings_command(findings_of(run), process->pid, command, answer);
}

// What the target half performs (target/monitor.h).
#define TAKES "ADDRESS [LENGTH]"
static const struct tool_request requests[] = {
    {"leak_check", "leak_check [ARGUMENTS]", "search for leaks now"},
    {"block_list", "block_list RECORD", "list the blocks of a loss record"},
    {"who_points_at", "who_points_at " TAKES, "list the places that point there"},
    {"get_vbits", "get_vbits " TAKES, "show which bits are undefined"},
    {"xb", "xb " TAKES, "show undefined bits and the bytes below them"},
    {"make_memory", "make_memory STATE " TAKES, "mark memory as noaccess, undefined or defined"},
    {"check_memory", "check_memory STATE " TAKES, "check whether memory is addressable or defined"},
    {0},
};

const struct supervisor_tool supervisor_memcheck = {
    .name = "memcheck",
    .help = "detector of memory errors and leaks",
    .finds_errors = true,
    .options = memcheck_options,
    .requests = requests,
    .monitor = take_command,
    .settings = memcheck_settings,
    .release = memcheck_release,
    .changed = memcheck_changed,
    .knows = memcheck_knows,
    .open = open_run,
    .message = take_message,
    .mapped = note_mapping,
    .unmapped = note_unmapping,
    .began = note_program,
    .forked = note_fork,
    .ended = note_end,
    .failed = has_failed,
    .thread_number = number_of_thread,
};
