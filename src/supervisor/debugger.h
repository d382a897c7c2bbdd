// gdb and the processes of the target: passes bytes on between `quern vgdb`, which gdb runs, and
// the socket over which a process answers gdb (engine/debug/debug.h).
//
// A connection has two ends: the client's, from the control socket (base/control.h), and the
// process's, which arrives over the wire. Either may come first. A process that gdb wants something
// of while it runs is told by a signal.
#ifndef QUERN_SUPERVISOR_DEBUGGER_H
#define QUERN_SUPERVISOR_DEBUGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "supervisor/followed.h"

struct debug_connection; // debugger.c
struct supervisor_request;
struct tool_run;

// The job's.
struct debugger {
    struct debug_connection *connections;
    size_t connection_count;
    int events;           // an epoll set
    struct text diverted; // lines of the log that belong to a command
};

// Added to a descriptor, what an epoll event of this part is about.
#define DEBUGGER_EVENT (1ull << 40)

// Events go to this set from now on.
void debugger_use_events(struct debugger *, int epoll);
// The descriptor is ready.
void debugger_take_event(struct debugger *, int fd);

// Somebody wants to debug the process: `client` belongs to the connection from now on. NULL, or why
// not, as a static text; the client stays the caller's then.
const char *debugger_connect(struct debugger *, const struct supervisor_request *,
                             const struct followed *process, int client);
// The process has given its end. `waits`: it does until gdb connects.
void debugger_take_process(struct debugger *, const struct followed *process, int fd, bool waits);
// It can be asked for things from now on.
void debugger_greeted(struct debugger *, const struct followed *process);
// It is about to exec: it cannot be asked until it greets again.
void debugger_execs(struct debugger *, const struct followed *process);
void debugger_forget(struct debugger *, int pid);
// WIRE_MONITOR.
void debugger_monitor(struct debugger *, struct tool_run *run, const struct followed *process,
                      int level, const char *command);

#endif
