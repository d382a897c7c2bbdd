// Limits for a recorded run (--max-peak and its kin): what exceeds one is said, is a result for other
// programs (outputs.h), and fails the run.
#ifndef QUERN_SUPERVISOR_BUDGETS_H
#define QUERN_SUPERVISOR_BUDGETS_H

#include "profile/summary.h"
#include "supervisor/supervisor.h"

// A process of the run has ended; `path` is its recording. Does nothing without limits.
void budgets_check(const struct budget_settings *settings, int pid, const struct summary *summary,
                   const char *path);
bool budgets_failed(void);

#endif
