// Files for other programs: what all processes of a run have had, written at its end.
#ifndef QUERN_SUPERVISOR_OUTPUTS_H
#define QUERN_SUPERVISOR_OUTPUTS_H

#include "report/results/results.h"
#include "supervisor/supervisor.h"

// Once, before the main process runs.
void outputs_prepare(const struct supervisor_request *request);
// Where findings of all kinds go; NULL: nobody wants to know.
struct results *outputs_results(void);
// How many results there are, and how many of them are in the baseline; a line for the log, or NULL
// without a baseline. To be freed.
char *outputs_baseline_line(void);
// Writes everything; `status` is what the run ends with. False: a file could not be written, which
// has been said.
bool outputs_write(int main_pid, int status);

#endif
