// Limits for a run (--max-peak and its kin): what exceeds one is said, is a result for other
// programs (outputs.h), and fails the run.
#ifndef QUERN_SUPERVISOR_BUDGETS_H
#define QUERN_SUPERVISOR_BUDGETS_H

#include "profile/heap/summary.h"
#include "report/results/budgets.h"
#include "supervisor/supervisor.h"

// A process of the run has ended. What its tool never knows has been refused before; a number that
// is missing now fails.
void budgets_check(const struct budget_settings *settings, int pid,
                   const struct budget_numbers *numbers);
// What a recording knows; `path` is where it is, needed for growth.
void budgets_recorded(struct budget_numbers *numbers, const struct budget_settings *settings,
                      const struct summary *summary, const char *path);
bool budgets_failed(void);

#endif
