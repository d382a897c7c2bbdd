// Files of values by call stack (report/xtree/xtree.h), as tools write them when a process has
// ended.
#ifndef QUERN_SUPERVISOR_XTREE_FILE_H
#define QUERN_SUPERVISOR_XTREE_FILE_H

#include "base/text.h"
#include "report/xtree/xtree.h"
#include "supervisor/supervisor.h"

// Of --xtree-memory. In the order of enum site_value (wire/findings.h).
enum { XTREE_LIVE_EVENTS = 2, XTREE_MEMORY_EVENTS = 6 };
extern const struct xtree_event xtree_memory_events[XTREE_MEMORY_EVENTS];

// The command of a process, to be freed.
char *xtree_file_command(int pid, char *const *argv);
// Writes the file; `pattern` is its name's template. What there is to say about it, to be freed;
// NULL: nothing, or that it could not be written has been said.
char *xtree_file_write(int pid, const char *what, const char *pattern, const struct text *content);
// The same of --xtree-memory: the name decides about the format.
char *xtree_file_write_memory(struct xtree *, const struct supervisor_request *,
                              const char *pattern);

#endif
