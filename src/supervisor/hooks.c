#include "supervisor/hooks.h"

#include <unistd.h>

static const struct supervisor_tool *tool_of(const struct tool_run *run) {
    return run->request->tool;
}

bool hooks_choose(struct tool_run *run) {
    return !tool_of(run)->choose || tool_of(run)->choose(run);
}

void hooks_enter(struct tool_run *run, int wire, int config) {
    if (tool_of(run)->enter)
        tool_of(run)->enter(run, wire, config);
}

bool hooks_open(struct tool_run *run) {
    return !tool_of(run)->open || tool_of(run)->open(run);
}

void hooks_started(struct tool_run *run) {
    if (tool_of(run)->started)
        tool_of(run)->started(run);
}

void hooks_attached(struct tool_run *run) {
    if (tool_of(run)->attached)
        tool_of(run)->attached(run);
}

bool hooks_message(struct tool_run *run, struct followed *process,
                   const struct wire_message *message) {
    bool is_taken = tool_of(run)->message && tool_of(run)->message(run, process, message);
    if (!is_taken && message->fd >= 0)
        close(message->fd);
    return is_taken;
}

void hooks_mapped(struct tool_run *run, struct followed *process,
                  const struct wire_module_map *map) {
    if (tool_of(run)->mapped)
        tool_of(run)->mapped(run, process, map);
}

void hooks_unmapped(struct tool_run *run, struct followed *process) {
    if (tool_of(run)->unmapped)
        tool_of(run)->unmapped(run, process);
}

void hooks_began(struct tool_run *run, struct followed *process) {
    if (tool_of(run)->began)
        tool_of(run)->began(run, process);
}

void hooks_forked(struct tool_run *run, const struct followed *parent, struct followed *child) {
    if (tool_of(run)->forked)
        tool_of(run)->forked(run, parent, child);
}

void hooks_ended(struct tool_run *run, struct followed *process) {
    if (tool_of(run)->ended)
        tool_of(run)->ended(run, process);
}

bool hooks_monitor(struct tool_run *run, const struct followed *process, const char *command,
                   struct text *answer) {
    return tool_of(run)->monitor && tool_of(run)->monitor(run, process, command, answer);
}

bool hooks_request(struct tool_run *run, const char *request, struct text *answer) {
    return tool_of(run)->request && tool_of(run)->request(run, request, answer);
}

int64_t hooks_timeout(struct tool_run *run) {
    return tool_of(run)->timeout ? tool_of(run)->timeout(run) : -1;
}

void hooks_drain(struct tool_run *run) {
    if (tool_of(run)->drain)
        tool_of(run)->drain(run);
}

void hooks_stopping(struct tool_run *run) {
    if (tool_of(run)->stopping)
        tool_of(run)->stopping(run);
}

void hooks_finish(struct tool_run *run) {
    if (tool_of(run)->finish)
        tool_of(run)->finish(run);
}

bool hooks_failed(struct tool_run *run) {
    return tool_of(run)->failed && tool_of(run)->failed(run);
}

int hooks_thread_number(struct tool_run *run, int pid, int tid) {
    return tool_of(run)->thread_number ? tool_of(run)->thread_number(run, pid, tid) : 1;
}
