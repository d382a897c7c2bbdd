// Job control and signals sent to the supervisor.
//
// Supervisor and target share a process group, so that what the terminal sends (Ctrl+C, Ctrl+Z,
// hang-up) reaches the target by itself. What somebody sends to the supervisor's pid alone is meant
// for the target and is handed on. When the main process stops, the supervisor stops too, so that
// the shell sees a stopped job; it wakes when either is continued, and to end the main process when
// --duration is over.
#ifndef QUERN_SUPERVISOR_JOB_H
#define QUERN_SUPERVISOR_JOB_H

#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

// Acts on a signal the supervisor received.
void job_signal(pid_t main_pid, const struct signalfd_siginfo *info);
// The main process was stopped by this signal: stop as well. Returns when continued.
void job_stopped(pid_t main_pid, int signal);
// Ends the supervisor by a signal, without leaving a core file of its own. Does not return.
_Noreturn void job_die_by(int signal);

#endif
