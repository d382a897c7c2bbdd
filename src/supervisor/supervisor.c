#include "supervisor/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/control.h"
#include "fleet/fleet.h"
#include "supervisor/attached.h"
#include "supervisor/budgets.h"
#include "supervisor/collect.h"
#include "supervisor/diagnosis.h"
#include "supervisor/hooks.h"
#include "supervisor/job.h"
#include "supervisor/launch.h"
#include "supervisor/log.h"
#include "supervisor/outputs.h"
#include "supervisor/present.h"
#include "supervisor/xml_out.h"
#include "wire/wire_supervisor.h"

#define STATUS_FAILED 1

// The status to exit with; -1: die by the signal that ended the target.
static int own_status(struct tool_run *run, int status) {
    const struct supervisor_request *request = run->request;
    if (request->budgets.error_status && hooks_failed(run))
        return request->budgets.error_status;
    if (budgets_failed(request) || diagnosis_failed(request))
        return request->budgets.status;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    // Stopped as asked is a success, not a failure.
    return stop_was_planned(&request->job->stop, WTERMSIG(status)) ? 0 : -1;
}

// Launches the main process, which waits. False after a message: there is no run.
static bool launch_main(struct tool_run *run, struct launch *launch) {
    const struct supervisor_request *request = run->request;
    struct job *job = request->job;
    launch_prepare(launch);
    outputs_prepare(request);
    if (!scenario_may_begin(request) || !hooks_choose(run))
        return false;
    if (request->attach_pid)
        *launch = (struct launch){.pid = request->attach_pid, .wire = -1, .output = {-1, -1}};
    else if (!launch_start(launch, run))
        return false;
    run->main_pid = job->main_pid = launch->pid;
    job->stop = (struct stop){.processes = &job->processes, .main_pid = launch->pid};
    return true;
}

// Opens what the run writes to and lets the main process go on. False after a message.
static bool begin_run(struct tool_run *run, struct launch *launch) {
    const struct supervisor_request *request = run->request;
    if (!hooks_open(run) || !log_open(run->log, launch->pid) || !xml_open(request, launch->pid)) {
        if (!request->attach_pid)
            launch_abandon(launch);
        return false;
    }
    wire_board_set_places(log_descriptor(run->log), xml_descriptor(request));
    size_t count = 0;
    while (request->argv[count])
        count++;
    launch->control = control_open(launch->pid); // before anybody can read the number
    present_banner(request, launch->pid, getppid(), (const char *const *)request->argv, count);
    present_remarks(request, launch->pid);
    if (request->attach_pid ? attached_start(request->job->attached, launch, run)
                            : launch_release(launch, request))
        return true;
    control_close(launch->control, launch->pid);
    return false;
}

// Runs the target to its end. Its wait status; -1 after a message: there was no run.
static int run_target(struct tool_run *run) {
    struct launch launch;
    if (!launch_main(run, &launch))
        return -1;
    run->symbols = present_symbols(run->request);
    int status = begin_run(run, &launch) ? collect_until_end(run, &launch) : -1;
    // Tools that find errors have said how it ended.
    if (status >= 0 && log_shows(run->log, 0) && !run->request->tool->finds_errors)
        log_print(run->log, launch.pid, LOG_USER, "");
    symbols_free(run->symbols);
    log_close(run->log);
    xml_close(run->request);
    return status;
}

int supervisor_run(struct supervisor_request *request) {
    struct attached attached = {.load.pidfd = -1};
    struct job job = {.log = log_new(&request->log),
                      .attached = request->attach_pid ? &attached : NULL};
    request->job = &job;
    struct tool_run run = {.request = request,
                           .log = job.log,
                           .processes = &job.processes,
                           .state = request->tool_state};
    int status = run_target(&run);
    fleet_end(request->fleet);
    int own = status < 0 ? STATUS_FAILED : own_status(&run, status);
    if (own == 0 && (scenario_failed(&job.scenario) || log_has_failed(job.log)))
        own = STATUS_FAILED;
    log_free(job.log);
    if (status < 0)
        return own;
    bool written = outputs_write(request, run.main_pid, own >= 0 ? own : 128 + WTERMSIG(status));
    if (own < 0)
        job_die_by(WTERMSIG(status));
    return own || written ? own : STATUS_FAILED;
}
