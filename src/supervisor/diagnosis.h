// What is wrong with the target's memory (report/diagnose/diagnose.h), said at the end of a run: in
// the log, as results for other programs (outputs.h), and, with --diagnose=error, by the exit
// status.
#ifndef QUERN_SUPERVISOR_DIAGNOSIS_H
#define QUERN_SUPERVISOR_DIAGNOSIS_H

#include "report/diagnose/diagnose.h"
#include "supervisor/supervisor.h"

// Whether somebody wants to know. `is_usual`: the tool says it by itself; of other tools the log
// stays as Valgrind's is, but on a terminal.
bool diagnosis_wanted(const struct supervisor_request *request, bool is_usual);
// Whether it is to be made even if that takes a while.
bool diagnosis_demanded(const struct supervisor_request *request);
// Says them; frees the list.
void diagnosis_tell(const struct supervisor_request *request, int pid, struct diagnoses *diagnoses,
                    bool is_usual);
// Whether there were some that fail the run.
bool diagnosis_failed(const struct supervisor_request *request);

#endif
