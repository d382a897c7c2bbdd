// The errors of all processes of a run: taken from the wire, suppressed, shown, counted, summed up.
//
// A context (wire/findings.h) is shown when it is first told; how often it was seen stands in the
// process's ledger, which is read when the process has ended, however that came about. A forked
// child starts with its parent's contexts, as its memory does.
#ifndef QUERN_SUPERVISOR_FINDINGS_H
#define QUERN_SUPERVISOR_FINDINGS_H

#include "supervisor/tool.h"
#include "tools/memcheck/supervisor/settings.h"

// Once, before the main process runs.
void findings_prepare(const struct supervisor_request *request, struct symbols *symbols,
                      int main_pid, const struct findings_settings *settings);
// The process runs a new program: what was found before is forgotten.
void findings_begin(int pid);
void findings_fork(int parent, int child);
// The mappings of a process have changed.
void findings_mapped(int pid);
// A message of types WIRE_LEDGER to WIRE_FINDINGS_END. False: it is another one.
bool findings_take(const struct followed *process, const struct wire_message *message);
// The process has ended; its mappings are still known. Shows the summary.
void findings_finish(const struct followed *process);
// Whether the main process, which has ended, had errors that count for --error-exitcode.
bool findings_main_failed(void);
// The number of a thread that has been heard of, else 1.
int findings_thread(int pid, int tid);

#endif
