// The supervisor's event loop: messages of the target's processes, their ends, signals, requests of
// quern ctl, deadlines. supervisor.c calls it once for each run. It returns when the run is over.
#ifndef QUERN_SUPERVISOR_COLLECT_H
#define QUERN_SUPERVISOR_COLLECT_H

#include "supervisor/launch.h"
#include "supervisor/tool.h"

// Collects until the main process has ended and everything that it sent is shown. Returns its wait
// status. A collector in the background takes over followed processes that live on.
int collect_until_end(struct tool_run *run, const struct launch *launch);

#endif
