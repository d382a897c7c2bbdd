// Commands of gdb's user that the supervisor performs: those of the core that need names or counts,
// and the requests of tools that `quern ctl` has as well.
#ifndef QUERN_SUPERVISOR_MONITOR_H
#define QUERN_SUPERVISOR_MONITOR_H

#include "base/text.h"
#include "supervisor/followed.h"
#include "supervisor/tool.h"

// Appends the answer; it ends with a line feed.
void monitor_perform(struct tool_run *run, const struct followed *process, const char *command,
                     struct text *answer);

// Whether a request of `quern ctl` is a command for a process that stands still: one of the core,
// or one that the tool lists and its target half performs.
bool monitor_is_command(const struct supervisor_request *request, const char *command);

#endif
