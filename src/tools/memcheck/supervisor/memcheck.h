// The owner of memcheck's state in the supervisor.
#ifndef QUERN_MEMCHECK_SUPERVISOR_MEMCHECK_H
#define QUERN_MEMCHECK_SUPERVISOR_MEMCHECK_H

#include "tools/memcheck/supervisor/findings.h"

// Once, before the main process runs.
void memcheck_prepare(const struct supervisor_request *request, struct symbols *symbols,
                      int main_pid);
struct findings *memcheck_findings(void);

#endif
