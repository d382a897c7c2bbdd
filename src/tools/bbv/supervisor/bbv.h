// The supervisor half of exp-bbv: it writes the files of a process from what the target half hands
// over (tools/bbv/bbv.h).
#ifndef QUERN_TOOLS_BBV_SUPERVISOR_BBV_H
#define QUERN_TOOLS_BBV_SUPERVISOR_BBV_H

#include "supervisor/tool.h"

struct bbv_settings {
    const char *bb_out_file;
    const char *pc_out_file; // NULL: not wanted
    uint64_t interval_size;
};

struct bbv_output; // a followed process's `own`

// Takes a memory file of the process.
void bbv_take_file(struct tool_run *run, struct followed *process, int fd);
// The process has ended: writes the rest, and the summary to the log.
void bbv_finish(struct tool_run *run, struct followed *process);

#endif
