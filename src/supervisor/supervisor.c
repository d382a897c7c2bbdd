#include "supervisor/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/control.h"
#include "supervisor/budgets.h"
#include "supervisor/collect.h"
#include "supervisor/diagnosis.h"
#include "supervisor/hooks.h"
#include "supervisor/job.h"
#include "supervisor/launch.h"
#include "supervisor/log.h"
#include "supervisor/outputs.h"
#include "supervisor/present.h"
#include "supervisor/scenario.h"
#include "supervisor/stop.h"
#include "supervisor/xml_out.h"

#define STATUS_FAILED 1

// The status to exit with; -1: die by the signal that ended the target.
static int own_status(struct tool_run *run, int status) {
    const struct supervisor_request *request = run->request;
    if (request->budgets.error_status && hooks_failed(run))
        return request->budgets.error_status;
    if (budgets_failed() || diagnosis_failed())
        return request->budgets.status;
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    // Stopped as asked is a success, not a failure.
    return stop_was_planned(WTERMSIG(status)) ? 0 : -1;
}

int supervisor_run(const struct supervisor_request *request) {
    struct launch launch;
    struct tool_run run = {.request = request, .state = request->tool_state};
    launch_prepare();
    outputs_prepare(request);
    if (!scenario_may_begin(request) || !hooks_choose(&run) || !launch_start(&launch, &run))
        return STATUS_FAILED;
    run.main_pid = launch.pid;
    run.symbols = symbols_new(&request->symbols);
    if (!hooks_open(&run) || !log_open(&request->log, launch.pid) ||
        !xml_open(request, launch.pid)) {
        launch_abandon(&launch);
        symbols_free(run.symbols);
        return STATUS_FAILED;
    }
    size_t count = 0;
    while (request->argv[count])
        count++;
    launch.control = control_open(launch.pid); // before anybody can read the number
    present_banner(request, launch.pid, getppid(), (const char *const *)request->argv, count);
    present_remarks(request, launch.pid);
    if (!launch_release(&launch, request)) {
        control_close(launch.control, launch.pid);
        log_close();
        symbols_free(run.symbols);
        return STATUS_FAILED;
    }
    int status = collect_until_end(&run, &launch);
    // Tools that find errors have said how it ended.
    if (log_shows(0) && !request->tool->finds_errors)
        log_print(launch.pid, LOG_USER, "");
    symbols_free(run.symbols);
    log_close();
    xml_close();
    int own = own_status(&run, status);
    if (own == 0 && (scenario_failed() || log_has_failed()))
        own = STATUS_FAILED;
    bool written = outputs_write(launch.pid, own >= 0 ? own : 128 + WTERMSIG(status));
    if (own < 0)
        job_die_by(WTERMSIG(status));
    return own || written ? own : STATUS_FAILED;
}
