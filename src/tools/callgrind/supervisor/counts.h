// From the counts of a process (wire/call_counts.h) to its callgrind.out or cachegrind.out files:
// at its end, at a dump while it runs, and when it asks for one itself.
//
// The process goes on counting while its file is read. Its counters never decrease; base.h keeps
// their values at the last dump, and the next one shows the difference.
#ifndef QUERN_TOOLS_CALLGRIND_COUNTS_H
#define QUERN_TOOLS_CALLGRIND_COUNTS_H

#include "supervisor/tool.h"

// The state of a run.
struct counts_settings {
    const char *file; // template
    bool lines, instructions;
    bool compress_strings, compress_positions;
    bool cachegrind; // that tool's file and order of events
    bool separate_threads;
    bool combine;     // dumps in one file
    bool plain_names; // functions of several contexts have the same name
};

// What is known of a process; its `own`. NULL: it has not handed a file over.
struct counts_process {
    int file;
    struct counts_base *base; // NULL: since the beginning
    unsigned dumps;           // written while it ran
};

// The process hands its file over, which replaces the one before.
void counts_attach(struct followed *process, int file);
void counts_detach(struct followed *process);

// Writes the file and says in the log what was counted. While the process's mappings are known.
void counts_report(const struct tool_run *run, const struct followed *process);

// While it runs: what was counted since the last dump or zero, in a file of its own.
void counts_dump(const struct tool_run *run, struct followed *process, const char *trigger);
void counts_zero(const struct tool_run *run, struct followed *process);
// Switches counting on and off. False: that cannot be done here.
bool counts_switch(const struct tool_run *run, const struct followed *process, bool on);
bool counts_are_on(const struct followed *process);
// The same when the process has asked for it and waits.
void counts_asked(const struct tool_run *run, struct followed *process, bool dump,
                  const char *trigger);

#endif
