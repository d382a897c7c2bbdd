// The findings of all processes of a run: taken from the wire, suppressed, shown, counted, summed
// up.
//
// The first finding of a context (profile/findings/finding.h) is shown when it arrives. The ledger
// of the process counts the findings of each context. The supervisor reads the ledger when the
// process has ended, in whatever way. A forked child starts with its parent's contexts.
#ifndef QUERN_MEMCHECK_SUPERVISOR_FINDINGS_H
#define QUERN_MEMCHECK_SUPERVISOR_FINDINGS_H

#include "supervisor/tool.h"
#include "tools/memcheck/supervisor/settings.h"

struct findings; // the state of a run

// Once, before the main process runs.
struct findings *findings_new(const struct tool_run *run, const struct findings_settings *settings);
void findings_free(struct findings *); // NULL: nothing
// The process runs a new program: what was found before is forgotten.
void findings_begin(struct findings *, int pid);
void findings_fork(struct findings *, int parent, int child);
// The mappings of a process have changed.
void findings_mapped(struct findings *, int pid);
// A message of types WIRE_LEDGER to WIRE_FINDINGS_END. False: it is another one.
bool findings_take(struct findings *, const struct followed *process,
                   const struct wire_message *message);
// The process has ended; its mappings are still known. Shows the summary.
void findings_finish(struct findings *, const struct followed *process);
// Whether the main process, which has ended, had errors that count for --error-exitcode.
bool findings_main_failed(const struct findings *);
// The number of a thread that has sent a finding, else 1.
int findings_thread(const struct findings *, int pid, int tid);

// A command of gdb's user about the errors of a process. False: it is none.
bool findings_command(struct findings *run, int pid, const char *command, struct text *answer);

#endif
