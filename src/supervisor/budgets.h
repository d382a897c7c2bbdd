// Limits for a run (--max-peak and its kin). A number above its limit is reported in the log and as
// a result for other programs (outputs.h), and fails the run.
#ifndef QUERN_SUPERVISOR_BUDGETS_H
#define QUERN_SUPERVISOR_BUDGETS_H

#include "profile/heap/summary.h"
#include "report/results/budgets.h"
#include "supervisor/supervisor.h"

// A process of the run has ended with these numbers. A limit whose number is missing fails the run:
// tools that never know a number have been refused before.
void budgets_check(const struct supervisor_request *request, int pid,
                   const struct budget_numbers *numbers);
// Fills in what a recording knows; `path` is the recording, which growth is computed from.
void budgets_recorded(struct budget_numbers *numbers, const struct budget_settings *settings,
                      const struct summary *summary, const char *path);
bool budgets_failed(const struct supervisor_request *request);

#endif
