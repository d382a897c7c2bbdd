// From what dhat counted in a process (wire/dhat_counts.h) to its dhat.out file.
#ifndef QUERN_SUPERVISOR_DHAT_H
#define QUERN_SUPERVISOR_DHAT_H

#include "supervisor/followed.h"
#include "supervisor/supervisor.h"

// Writes the file and sums up in the log. While the process's mappings are known.
void dhat_report(const struct supervisor_request *, struct symbols *, const struct followed *);

#endif
