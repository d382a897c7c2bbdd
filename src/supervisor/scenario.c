#include "supervisor/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/signal_name.h"
#include "supervisor/job.h"
#include "supervisor/log.h"

enum { LINE_MOST = 65536 };
enum { LOAD_GRACE_MS = 2000, LOAD_LOOK_MS = 10 };

bool scenario_wants_output(const struct supervisor_request *request) {
    return request->scenario.log != NULL;
}

static void fail(struct scenario *scenario, const char *text) {
    scenario->has_failed = true;
    log_complain("%s", text);
}

bool supervisor_waits(const struct scenario_settings *settings) {
    return settings->port || settings->udp_port || settings->path || settings->url || settings->log;
}

void scenario_begin(struct scenario *scenario, const struct supervisor_request *request) {
    const struct scenario_settings *settings = &request->scenario;
    scenario->settings = settings;
    scenario->duration = request->duration;
    scenario->job = request->job;
    if (!supervisor_waits(settings)) {
        stop_after(&request->job->stop, request->duration);
        return;
    }
    // Checked when options were read.
    scenario->has_regex = settings->log && regcomp(&scenario->ready_line, settings->log,
                                                   REG_EXTENDED | REG_NOSUB) == 0;
    scenario->state = SCENARIO_WAITING;
    scenario->begin = clock_milliseconds();
    scenario->give_up = scenario->begin + settings->timeout * 1000;
}

// ---- the load ----------------------------------------------------------------------------------

static void run_load(struct scenario *scenario) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); // here and in the parent: it must have a group before either goes on
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 0);
    char number[16];
    snprintf(number, sizeof number, "%d", scenario->job->main_pid);
    setenv("QUERN_PID", number, 1);
    execl("/bin/sh", "sh", "-c", scenario->settings->load, (char *)NULL);
    _exit(127);
}

static double seconds_since(int64_t moment) {
    return (double)(clock_milliseconds() - moment) / 1000;
}

static void become_ready(struct scenario *scenario) {
    scenario->state = SCENARIO_DONE;
    if (log_shows(scenario->job->log, 0))
        log_format(scenario->job->log, scenario->job->main_pid, LOG_USER, "Ready after %.1f s%s%s",
                   seconds_since(scenario->begin), scenario->settings->load ? "; load: " : "",
                   scenario->settings->load ? scenario->settings->load : "");
    scenario->ready = clock_milliseconds();
    stop_after(&scenario->job->stop, scenario->duration);
    if (!scenario->settings->load)
        return;
    scenario->load_pid = fork();
    if (scenario->load_pid == 0)
        run_load(scenario);
    setpgid(scenario->load_pid, scenario->load_pid);
    scenario->state = SCENARIO_LOADING;
    if (scenario->load_pid < 0) {
        fail(scenario, "cannot start the load");
        scenario->state = SCENARIO_DONE;
        stop_now(&scenario->job->stop);
    }
}

// Appends "ended with status 3", or by which signal.
static void text_end(struct text *text, int status) {
    if (WIFEXITED(status))
        text_format(text, "ended with status %d", WEXITSTATUS(status));
    else
        text_format(text, "was ended by %s", signal_name(WTERMSIG(status)));
}

static void look_at_load(struct scenario *scenario) {
    int status;
    if (waitpid(scenario->load_pid, &status, WNOHANG) != scenario->load_pid)
        return;
    scenario->state = SCENARIO_DONE;
    struct text text = {0};
    text_format(&text, "the load '%s' ", scenario->settings->load);
    text_end(&text, status);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail(scenario, text.bytes);
    else if (log_shows(scenario->job->log, 0))
        log_format(scenario->job->log, scenario->job->main_pid, LOG_USER,
                   "The load ended after %.1f s; stopping the program",
                   seconds_since(scenario->ready));
    text_free(&text);
    stop_now(&scenario->job->stop);
}

// All of it, also what does not listen to SIGTERM.
static void end_load(struct scenario *scenario) {
    kill(-scenario->load_pid, SIGTERM);
    struct timespec pause = {.tv_nsec = LOAD_LOOK_MS * 1000000};
    for (int waited = 0; waited < LOAD_GRACE_MS; waited += LOAD_LOOK_MS) {
        if (waitpid(scenario->load_pid, NULL, WNOHANG) == scenario->load_pid) {
            kill(-scenario->load_pid, SIGKILL);
            return;
        }
        nanosleep(&pause, NULL);
    }
    kill(-scenario->load_pid, SIGKILL);
    waitpid(scenario->load_pid, NULL, 0);
}

// ---- readiness ---------------------------------------------------------------------------------

bool scenario_may_begin(const struct supervisor_request *request) {
    return readiness_may_begin(&request->job->scenario.readiness, &request->scenario, request->job);
}

static void take_text(struct scenario *scenario, struct text *line, const char *bytes,
                      size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') {
            if (line->size < LINE_MOST && bytes[i])
                text_char(line, bytes[i]);
            continue;
        }
        if (scenario->state == SCENARIO_WAITING && scenario->has_regex &&
            regexec(&scenario->ready_line, line->bytes ? line->bytes : "", 0, NULL, 0) == 0)
            become_ready(scenario);
        text_clear(line);
    }
}

bool scenario_output(struct scenario *scenario, int from, bool errors) {
    char bytes[65536];
    ssize_t got;
    while ((got = read(from, bytes, sizeof bytes)) > 0) {
        fd_write_all(errors ? 2 : 1, bytes, (size_t)got);
        take_text(scenario, &scenario->lines[errors], bytes, (size_t)got);
        scenario->has_printed |= !errors;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

// ---- the clock ---------------------------------------------------------------------------------

int scenario_timeout(const struct scenario *scenario) {
    if (scenario->state != SCENARIO_WAITING && scenario->state != SCENARIO_LOADING)
        return -1;
    int64_t left = scenario->next_look - clock_milliseconds();
    return left < 0 ? 0 : (int)left;
}

static void fail_unready(struct scenario *scenario) {
    const struct scenario_settings *settings = scenario->settings;
    struct text text = {0};
    readiness_explain(&scenario->readiness, &text);
    if (settings->log && !settings->is_terminal && !scenario->has_printed)
        text_string(&text, ". It may keep its output in a buffer, because it does not go to a "
                           "terminal: --ready-terminal=yes gives it one");
    fail(scenario, text.bytes);
    text_free(&text);
}

void scenario_tick(struct scenario *scenario) {
    if (scenario_timeout(scenario) != 0)
        return;
    if (scenario->state == SCENARIO_LOADING) {
        look_at_load(scenario);
    } else if (readiness_look(&scenario->readiness)) {
        become_ready(scenario);
    } else if (clock_milliseconds() > scenario->give_up) {
        scenario->state = SCENARIO_DONE;
        fail_unready(scenario);
        stop_now(&scenario->job->stop);
    }
    scenario->next_look = clock_milliseconds() + readiness_pause(&scenario->readiness);
}

static void fail_early(struct scenario *scenario, int status) {
    struct text text = {0};
    text_string(&text, "the program ");
    text_end(&text, status);
    text_string(&text, " before it was ready");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        text_string(&text, "; a server must stay in the foreground");
    fail(scenario, text.bytes);
    text_free(&text);
}

void scenario_end(struct scenario *scenario, int status) {
    if (scenario->state == SCENARIO_WAITING)
        fail_early(scenario, status);
    if (scenario->state == SCENARIO_LOADING) {
        // A load that has done its work notices late that nobody serves any more.
        look_at_load(scenario);
        if (scenario->state == SCENARIO_LOADING) {
            bool over = scenario->duration &&
                        clock_milliseconds() - scenario->ready >= scenario->duration * 1000;
            fail(scenario, over ? "the load was still running when --duration was over"
                                : "the program ended while the load was running");
            end_load(scenario);
        }
    }
    scenario->state = SCENARIO_DONE;
    readiness_end(&scenario->readiness);
    if (scenario->has_regex)
        regfree(&scenario->ready_line);
    scenario->has_regex = false;
    text_free(&scenario->lines[0]);
    text_free(&scenario->lines[1]);
}

bool scenario_failed(const struct scenario *scenario) {
    return scenario->has_failed;
}
