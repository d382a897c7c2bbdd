// Ending the target before it ends by itself, politely first.
//
//   --duration, ctl  SIGINT, after a grace SIGTERM, after another SIGKILL
//   second Ctrl+C    SIGTERM, after a grace SIGKILL
//   third            SIGKILL
//
// The first signals go to the main process, which knows how to end its children; SIGKILL goes to
// all followed processes. A process that is stopped is continued, to act on them; job.h wakes the
// supervisor, which is stopped then, too. A process that has begun to end is left alone for as long
// as its tool takes, such as for a search for leaks; only a further Ctrl+C cuts that short.
#ifndef QUERN_SUPERVISOR_STOP_H
#define QUERN_SUPERVISOR_STOP_H

#include <stdbool.h>

// Starts the clock of --duration (0: never).
void stop_after(long seconds);
// As if --duration had run out now.
void stop_now(void);
// Milliseconds until stop_tick has something to do; -1: nothing to wait for.
int stop_timeout(void);
// Whether stop_tick is about to send the first signal.
bool stop_is_next(void);
// Sends what is due.
void stop_tick(int main_pid);
// Ctrl+C was typed and reached the target too. Twice within a few seconds means: stop now.
void stop_interrupted(int main_pid);
// Whether this signal was sent because --duration had run out.
bool stop_was_planned(int signal);

#endif
