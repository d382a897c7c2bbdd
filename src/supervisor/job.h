// The state of a run, job control, and signals sent to the supervisor.
//
// Supervisor and target share a process group, so signals from the terminal (Ctrl+C, Ctrl+Z,
// hang-up) reach the target directly. A signal to the supervisor's pid alone is meant for the
// target, and the supervisor passes it on. When the main process stops, the supervisor stops too,
// so that the shell sees a stopped job. It wakes when either is continued, and to end the main
// process when --duration is over.
#ifndef QUERN_SUPERVISOR_JOB_H
#define QUERN_SUPERVISOR_JOB_H

#include <stdbool.h>
#include <sys/signalfd.h>
#include <sys/types.h>

#include "report/results/results.h"
#include "supervisor/debugger.h"
#include "supervisor/followed.h"
#include "supervisor/scenario.h"
#include "supervisor/stop.h"

struct attached;     // attached.h
struct log;          // log.h
struct xml_document; // xml_out.c

// What the supervisor's parts keep about a run. supervisor_run makes it, request->job leads to it,
// and each part touches only its own fields.
struct job {
    pid_t main_pid; // 0 until it is launched
    struct log *log;
    struct followed_table processes;
    struct stop stop;
    struct scenario scenario;
    struct debugger debugger;
    struct attached *attached; // NULL: the main process is ours
    // outputs.c
    struct results results;
    bool results_wanted;
    // budgets.c
    bool over_budget;
    // diagnosis.c
    bool has_failed_diagnosis; // there is a diagnosis that fails the run
    // xml_out.c; the first document is the main process's
    struct xml_document *documents;
    size_t document_count;
    bool xml_broken; // a failure to write has been reported
};

// Acts on a signal the supervisor received.
void job_signal(struct job *job, const struct signalfd_siginfo *info);
// The main process was stopped by this signal: stop as well. Returns when continued.
void job_stopped(const struct job *job, int signal);
// Ends the supervisor by a signal, without leaving a core file of its own. Does not return.
_Noreturn void job_die_by(int signal);

#endif
