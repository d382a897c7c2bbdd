// A server in one command: waits until the target serves, runs a load against it, stops it.
//
//   --ready-port, --ready-udp-port, --ready-path, --ready-url: readiness.h
//   --ready-log=REGEX   the target is ready when a line of its output matches
//   --load=COMMAND      the shell runs it then; when it ends, the target is stopped, as by
//                       --duration
//   --duration          with one of these, it counts from the moment the target is ready; a
//                       load that takes longer fails
//
// With --ready-log the target's output goes through the supervisor: by pipes, or, with
// --ready-terminal=yes, the standard output by a pseudo-terminal, so that C's stdio does not keep
// lines back.
#ifndef QUERN_SUPERVISOR_SCENARIO_H
#define QUERN_SUPERVISOR_SCENARIO_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "supervisor/readiness.h"
#include "supervisor/supervisor.h"

enum scenario_state { SCENARIO_IDLE, SCENARIO_WAITING, SCENARIO_LOADING, SCENARIO_DONE };

// How far the scenario of a run is; times in milliseconds. The job owns it.
struct scenario {
    const struct scenario_settings *settings;
    long duration; // of the request
    struct job *job;
    enum scenario_state state;
    bool has_failed;
    int64_t begin, next_look, give_up;
    int64_t ready; // when it was
    struct readiness readiness;
    int load_pid;
    bool has_regex;
    regex_t ready_line;
    struct text lines[2]; // unfinished ones, of both outputs
    bool has_printed;     // to its standard output
};

// Whether the target's output is to go through the supervisor.
bool scenario_wants_output(const struct supervisor_request *request);

// Before the target runs. False after a message: another process uses its port.
bool scenario_may_begin(const struct supervisor_request *request);
// Once, when the target runs. Starts the clock of --duration if there is nothing to wait for.
void scenario_begin(struct scenario *scenario, const struct supervisor_request *request);
// Milliseconds until scenario_tick is due; -1: never.
int scenario_timeout(const struct scenario *scenario);
void scenario_tick(struct scenario *scenario);
// Copies the target's standard output or (errors) error output from `from`, and searches it for the
// ready line. False: the output has been closed.
bool scenario_output(struct scenario *scenario, int from, bool errors);
// The target has ended, with this status of waitpid.
void scenario_end(struct scenario *scenario, int status);
// Whether the scenario failed; a message has said why.
bool scenario_failed(const struct scenario *scenario);

#endif
