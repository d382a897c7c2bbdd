// Files for other programs (SARIF, JUnit, JSON): gathers the results of all processes of a run, and
// writes them at its end. Tools add results while the run goes on; the core prepares and writes.
#ifndef QUERN_SUPERVISOR_OUTPUTS_H
#define QUERN_SUPERVISOR_OUTPUTS_H

#include "report/results/results.h"
#include "supervisor/supervisor.h"

// Once, before the main process runs.
void outputs_prepare(const struct supervisor_request *request);
// Where findings of all kinds go; NULL: no file was requested.
struct results *outputs_results(const struct supervisor_request *request);
// A line for the log: the number of results in the baseline, and of new ones. NULL without a
// baseline. To be freed.
char *outputs_baseline_line(const struct supervisor_request *request);
// Writes everything; `status` is the exit status of the run. False after a message: a file could
// not be written.
bool outputs_write(const struct supervisor_request *request, int main_pid, int status);

#endif
