// Calls of the tool in use: one function for each hook of supervisor/tool.h that the supervisor
// calls during a run. It also does what is right for tools without the hook. Supervisor core only.
#ifndef QUERN_SUPERVISOR_HOOKS_H
#define QUERN_SUPERVISOR_HOOKS_H

#include <stdbool.h>

#include "supervisor/tool.h"

bool hooks_choose(struct tool_run *run);
void hooks_enter(struct tool_run *run, int wire, int config);
bool hooks_open(struct tool_run *run);
void hooks_started(struct tool_run *run);
void hooks_attached(struct tool_run *run);
// Closes the descriptor that came with a message that the tool does not take.
// Whether the tool has taken the message.
bool hooks_message(struct tool_run *run, struct followed *process,
                   const struct wire_message *message);
void hooks_mapped(struct tool_run *run, struct followed *process,
                  const struct wire_module_map *map);
void hooks_unmapped(struct tool_run *run, struct followed *process);
void hooks_began(struct tool_run *run, struct followed *process);
void hooks_forked(struct tool_run *run, const struct followed *parent, struct followed *child);
void hooks_ended(struct tool_run *run, struct followed *process);
bool hooks_monitor(struct tool_run *run, const struct followed *process, const char *command,
                   struct text *answer);
bool hooks_request(struct tool_run *run, const char *request, struct text *answer);
int64_t hooks_timeout(struct tool_run *run);
void hooks_drain(struct tool_run *run);
void hooks_stopping(struct tool_run *run);
void hooks_finish(struct tool_run *run);
bool hooks_failed(struct tool_run *run);
int hooks_thread_number(struct tool_run *run, int pid, int tid);

#endif
