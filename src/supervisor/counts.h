// From the counts of a process that has ended (wire/call_counts.h) to its callgrind.out file.
#ifndef QUERN_SUPERVISOR_COUNTS_H
#define QUERN_SUPERVISOR_COUNTS_H

#include "supervisor/followed.h"
#include "supervisor/supervisor.h"

// Writes the file and says in the log what was counted. While the process's mappings are known.
void counts_report(const struct supervisor_request *, struct symbols *, const struct followed *);

#endif
