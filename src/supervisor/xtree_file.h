// Files of values by call stack (report/xtree/xtree.h), as tools write them when a process has
// ended.
#ifndef QUERN_SUPERVISOR_XTREE_FILE_H
#define QUERN_SUPERVISOR_XTREE_FILE_H

#include "base/text.h"
#include "report/xtree/xtree.h"
#include "supervisor/supervisor.h"

// The events of --xtree-memory, in the order of enum site_value (wire/findings.h).
enum { XTREE_LIVE_EVENTS = 2, XTREE_MEMORY_EVENTS = 6 };
extern const struct xtree_event xtree_memory_events[XTREE_MEMORY_EVENTS];

// The command of a process, to be freed.
char *xtree_file_command(const struct supervisor_request *request, int pid);
// Writes the file; `pattern` is its name's template. Returns a line for the log, to be freed; NULL:
// none, or a message has said that the file could not be written.
char *xtree_file_write(const struct supervisor_request *request, int pid, const char *what,
                       const char *pattern, const struct text *content);
// The same for --xtree-memory: the name decides the format.
char *xtree_file_write_memory(struct xtree *, const struct supervisor_request *,
                              const char *pattern);

#endif
