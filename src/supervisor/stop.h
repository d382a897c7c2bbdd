// Stopping the target, politely first.
//
//   --duration, ctl  SIGINT, after a grace SIGTERM, after another SIGKILL
//   second Ctrl+C    SIGTERM, after a grace SIGKILL
//   third            SIGKILL
//
// The first signals go to the main process, which knows how to end its children. SIGKILL goes to
// all followed processes. A stopped process is continued, so that it acts on the signals; job.h
// wakes the supervisor, which has stopped with it. A process that has begun to end may take as long
// as its tool needs, for example for a leak search; only a further Ctrl+C interrupts that.
#ifndef QUERN_SUPERVISOR_STOP_H
#define QUERN_SUPERVISOR_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct followed_table;

enum stop_step { STOP_NOTHING, STOP_INTERRUPT, STOP_TERMINATE, STOP_KILL, STOP_DONE };

// How far the stopping of a run is. The job owns it and sets the first two fields, once the main
// process exists.
struct stop {
    const struct followed_table *processes;
    int main_pid;
    enum stop_step next_step; // what happens at the deadline
    int64_t deadline;
    int64_t last_interrupt; // when Ctrl+C was typed last; 0: never
    bool is_planned;
};

// Starts the clock of --duration (0: never).
void stop_after(struct stop *stop, long seconds);
// As if --duration had run out now.
void stop_now(struct stop *stop);
// Milliseconds until stop_tick has something to do; -1: nothing to wait for.
int stop_timeout(const struct stop *stop);
// Whether stop_tick is about to send the first signal.
bool stop_is_next(const struct stop *stop);
// Sends what is due.
void stop_tick(struct stop *stop);
// Ctrl+C was typed and reached the target too. Twice within a few seconds means: stop now.
void stop_interrupted(struct stop *stop);
// Whether this signal was sent because --duration had run out.
bool stop_was_planned(const struct stop *stop, int signal);

#endif
