// From the counts of a process (wire/call_counts.h) to its callgrind.out files.
#ifndef QUERN_SUPERVISOR_COUNTS_H
#define QUERN_SUPERVISOR_COUNTS_H

#include "supervisor/followed.h"
#include "supervisor/supervisor.h"

// Writes the file and says in the log what was counted. While the process's mappings are known.
void counts_report(const struct supervisor_request *, struct symbols *, const struct followed *);

// While it runs: what was counted since the last dump or zero, in a file of its own.
void counts_dump(const struct supervisor_request *, struct symbols *, struct followed *,
                 const char *trigger);
void counts_zero(const struct supervisor_request *, struct symbols *, struct followed *);
// Switches counting on and off. False: that cannot be done here.
bool counts_switch(const struct supervisor_request *, const struct followed *, bool on);
bool counts_are_on(const struct followed *);
// The same when the process has asked for it and waits.
void counts_asked(const struct supervisor_request *, struct symbols *, struct followed *, bool dump,
                  const char *trigger);

#endif
