// A run whose main process was there before (--pid): the recorder is loaded into it, and leaves it
// again. The process is never signalled, and goes on however the run ends.
#ifndef QUERN_SUPERVISOR_ATTACHED_H
#define QUERN_SUPERVISOR_ATTACHED_H

#include <stdbool.h>

#include "attach/load.h"
#include "supervisor/launch.h"

struct attached {
    struct load load;
    bool is_recording;
    bool has_failed; // there is nothing to report
};

// Gets the recorder into the process and gives it its options. launch->wire is the wire then. False
// after a message.
bool attached_start(struct attached *attached, struct launch *launch, const struct tool_run *run);
// The recorder is ready: from now on it records. False after a message.
bool attached_begin(struct attached *attached, const struct tool_run *run);
// Puts back what was changed, and lets the recorder's thread end. With is_gone, the process has
// ended.
void attached_leave(struct attached *attached, const struct launch *launch, struct tool_run *run,
                    bool is_gone);

#endif
