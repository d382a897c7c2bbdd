// The supervisor's event loop: messages of the target's processes, their ends, signals, deadlines.
#ifndef QUERN_SUPERVISOR_COLLECT_H
#define QUERN_SUPERVISOR_COLLECT_H

#include "supervisor/launch.h"
#include "supervisor/tool.h"

// Collects until the main process has ended and all it said before has been shown. Its wait status.
// Followed processes that live on are left to a collector in the background.
int collect_until_end(struct tool_run *run, const struct launch *launch);

#endif
