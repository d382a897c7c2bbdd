// dhat in the supervisor: the state of a run, and its two ways. In most modes the engine counts
// (wire/dhat_counts.h) and dhat.c writes the dhat.out file; with --mode=native the heap is recorded
// (native.c).
#ifndef QUERN_TOOLS_DHAT_DHAT_H
#define QUERN_TOOLS_DHAT_DHAT_H

#include "tools/shared/supervisor/recorded/recorded.h"

struct dhat_state {
    struct recorded recorded; // of --mode=native; else only out_file is set
    bool is_native;
    bool is_heap; // the mode is one that knows the heap
};

// Writes the file of what was counted and sums up in the log. While the process's mappings are
// known.
void dhat_report(const struct tool_run *run, const struct followed *process, int counts);

extern const struct recorded_tool dhat_native_hooks;

#endif
