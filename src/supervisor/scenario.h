// A server in one command: waits until the target serves, runs a load against it, stops it.
//
//   --ready-port=PORT   it is ready when it, and nobody else, accepts connections on the loopback
//                       interface
//   --ready-log=REGEX   it is ready when a line of its output matches
//   --load=COMMAND      is then run by the shell; at its end the target is stopped, as by
//                       --duration
//   --duration          counts from then on, if one of the first two is given; a load that takes
//                       longer has failed
//
// For --ready-log the target's output goes through the supervisor.
#ifndef QUERN_SUPERVISOR_SCENARIO_H
#define QUERN_SUPERVISOR_SCENARIO_H

#include <stdbool.h>

#include "supervisor/supervisor.h"

// Whether the target's output is to go through pipes.
bool scenario_wants_output(const struct supervisor_request *request);

// Before the target runs: false after a message if somebody else has its port.
bool scenario_may_begin(const struct supervisor_request *request);
// Once, when the target runs. Starts the clock of --duration if there is nothing to wait for.
void scenario_begin(const struct supervisor_request *request, int main_pid);
// Milliseconds until scenario_tick is due; -1: never.
int scenario_timeout(void);
void scenario_tick(void);
// Hands on what can be read from `from`, the target's standard output or (errors) error output, and
// looks at it. False: it has been closed.
bool scenario_output(int from, bool errors);
// The target has ended, with this status of waitpid.
void scenario_end(int status);
// Whether what was asked for did not happen; it has been said.
bool scenario_failed(void);

#endif
