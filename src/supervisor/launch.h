// Starting the target: the child of the supervisor that becomes quern-engine or, in a native run,
// the program itself, as the tool prepares it (with a library preloaded, say).
//
// The target must find what it would find natively: signal mask and dispositions, limits, open
// descriptors, environment, process group, terminal. So launch_prepare() saves what the supervisor
// is about to change in itself, and the child restores it before the exec. The engine keeps raised
// limits for itself and gets the target's on its command line (engine/rlimits.h).
#ifndef QUERN_SUPERVISOR_LAUNCH_H
#define QUERN_SUPERVISOR_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "supervisor/supervisor.h"
#include "wire/wire_start.h"

struct tool_run;

// What the supervisor found when it was started, and the target is to find again.
struct launch_given {
    sigset_t mask;
    struct sigaction child_action;
    struct rlimit limits[WIRE_LIMITS];
};

struct launch {
    struct launch_given given;
    pid_t pid;      // the main process
    int wire;       // the supervisor's end
    int wire_other; // the target's end, -1 once released
    int config;
    int gate;      // written to let the child go on
    int failure;   // read: the error number when the engine could not be started
    int output[2]; // the target's standard and error output, if they are wanted; else -1
    int control;   // where requests arrive (base/control.h), -1: nowhere
};

// The signals the supervisor reads as events: all but those that a fault of its own raises.
void launch_signals(sigset_t *set);
// Blocks them in the supervisor and raises its limits. Call once, first.
void launch_prepare(struct launch *launch);
// Forks the child, which waits. False after a message.
bool launch_start(struct launch *launch, struct tool_run *run);
// Lets the child exec the engine. False after a message when that failed.
bool launch_release(struct launch *launch, const struct supervisor_request *request);
// The options for the target half, as a descriptor; -1 with errno.
int launch_config(const struct supervisor_request *request);
// In the child: the target inherits this descriptor.
void launch_keep(int fd);
// In the child: the target loads this library. It comes first (wire/preloaded.h counts on that), so
// that it sees what an allocator preloaded by the user does.
void launch_preload(const char *library);
// Ends the waiting child: the run does not take place.
void launch_abandon(struct launch *launch);

#endif
