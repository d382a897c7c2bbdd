#include "supervisor/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/signal_name.h"
#include "base/text.h"
#include "supervisor/followed.h"
#include "supervisor/listener.h"
#include "supervisor/log.h"
#include "supervisor/stop.h"

enum { LOOK_MS = 50, LOOK_AGAIN_MS = 500, LINE_MOST = 65536, LISTENERS_MOST = 256 };
enum { LOAD_GRACE_MS = 2000, LOAD_LOOK_MS = 10 };

enum state { STATE_IDLE, STATE_WAITING, STATE_LOADING, STATE_DONE };

static const struct supervisor_request *request;
static int main_pid;
static enum state state;
static bool failed;
static int64_t begin, next_look, give_up;
static int64_t ready;  // when it was
static pid_t stranger; // who serves instead of the target; 0: nobody
static pid_t load_pid;
static regex_t ready_line;
static bool has_regex;
static struct text lines[2]; // unfinished ones, of both outputs

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool scenario_wants_output(const struct supervisor_request *of) {
    return of->scenario.log != NULL;
}

static void fail(const char *text) {
    failed = true;
    log_complain("%s", text);
}

void scenario_begin(const struct supervisor_request *of, int pid) {
    const struct scenario_settings *settings = &of->scenario;
    request = of;
    main_pid = pid;
    if (!settings->port && !settings->log) {
        stop_after(of->duration);
        return;
    }
    // Checked when options were read.
    has_regex = settings->log && regcomp(&ready_line, settings->log, REG_EXTENDED | REG_NOSUB) == 0;
    state = STATE_WAITING;
    begin = now_ms();
    give_up = begin + settings->timeout * 1000;
}

// ---- the load ----------------------------------------------------------------------------------

static void run_load(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0); // here and in the parent: it must have a group before either goes on
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 0);
    char number[16];
    snprintf(number, sizeof number, "%d", main_pid);
    setenv("QUERN_PID", number, 1);
    execl("/bin/sh", "sh", "-c", request->scenario.load, (char *)NULL);
    _exit(127);
}

static double seconds_since(int64_t moment) {
    return (double)(now_ms() - moment) / 1000;
}

static void become_ready(void) {
    state = STATE_DONE;
    if (log_shows(0))
        log_format(main_pid, LOG_USER, "Ready after %.1f s%s%s", seconds_since(begin),
                   request->scenario.load ? "; load: " : "",
                   request->scenario.load ? request->scenario.load : "");
    ready = now_ms();
    stop_after(request->duration);
    if (!request->scenario.load)
        return;
    load_pid = fork();
    if (load_pid == 0)
        run_load();
    setpgid(load_pid, load_pid);
    state = STATE_LOADING;
    if (load_pid < 0) {
        fail("cannot start the load");
        state = STATE_DONE;
        stop_now();
    }
}

// Appends "ended with status 3", or by which signal.
static void text_end(struct text *text, int status) {
    if (WIFEXITED(status))
        text_format(text, "ended with status %d", WEXITSTATUS(status));
    else
        text_format(text, "was ended by %s", signal_name(WTERMSIG(status)));
}

static void look_at_load(void) {
    int status;
    if (waitpid(load_pid, &status, WNOHANG) != load_pid)
        return;
    state = STATE_DONE;
    struct text text = {0};
    text_format(&text, "the load '%s' ", request->scenario.load);
    text_end(&text, status);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail(text.bytes);
    else if (log_shows(0))
        log_format(main_pid, LOG_USER, "The load has ended after %.1f s; the program is stopped",
                   seconds_since(ready));
    text_free(&text);
    stop_now();
}

// All of it, also what does not listen to SIGTERM.
static void end_load(void) {
    kill(-load_pid, SIGTERM);
    struct timespec pause = {.tv_nsec = LOAD_LOOK_MS * 1000000};
    for (int waited = 0; waited < LOAD_GRACE_MS; waited += LOAD_LOOK_MS) {
        if (waitpid(load_pid, NULL, WNOHANG) == load_pid) {
            kill(-load_pid, SIGKILL);
            return;
        }
        nanosleep(&pause, NULL);
    }
    kill(-load_pid, SIGKILL);
    waitpid(load_pid, NULL, 0);
}

// ---- readiness ---------------------------------------------------------------------------------

// Whether one of those who listen belongs to the target, or will: the target may inherit a socket.
static bool is_of_target(const int *pids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (pids[i] == getpid() || listener_descends(pids[i], main_pid) || followed_find(pids[i]))
            return true;
    return false;
}

// Somebody else may have taken the port since scenario_may_begin looked. Where nobody is known to
// listen (another user's process, say), the port speaks for itself.
static bool target_serves(void) {
    if (!listener_accepts(request->scenario.port))
        return false;
    int pids[LISTENERS_MOST];
    size_t count = listener_processes(request->scenario.port, pids, LISTENERS_MOST);
    stranger = count && !is_of_target(pids, count) ? pids[0] : 0;
    return !stranger;
}

bool scenario_may_begin(const struct supervisor_request *of) {
    int port = of->scenario.port;
    if (!port || !listener_accepts(port))
        return true;
    int pids[LISTENERS_MOST];
    size_t count = listener_processes(port, pids, LISTENERS_MOST);
    if (is_of_target(pids, count))
        return true;
    struct text text = {0};
    if (count)
        listener_name(&text, pids[0]);
    log_complain("--ready-port=%d: %s already accepts connections there; end it, or let the "
                 "program use another port",
                 port, count ? text.bytes : "another process");
    text_free(&text);
    return false;
}

static void take_text(struct text *line, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') {
            if (line->size < LINE_MOST && bytes[i])
                text_char(line, bytes[i]);
            continue;
        }
        if (state == STATE_WAITING && has_regex &&
            regexec(&ready_line, line->bytes ? line->bytes : "", 0, NULL, 0) == 0)
            become_ready();
        text_clear(line);
    }
}

bool scenario_output(int from, bool errors) {
    char bytes[65536];
    ssize_t got;
    while ((got = read(from, bytes, sizeof bytes)) > 0) {
        fd_write_all(errors ? 2 : 1, bytes, (size_t)got);
        take_text(&lines[errors], bytes, (size_t)got);
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

// ---- the clock ---------------------------------------------------------------------------------

int scenario_timeout(void) {
    if (state != STATE_WAITING && state != STATE_LOADING)
        return -1;
    int64_t left = next_look - now_ms();
    return left < 0 ? 0 : (int)left;
}

static void fail_unready(void) {
    struct text text = {0};
    if (stranger) {
        text_format(&text, "--ready-port=%d: ", request->scenario.port);
        listener_name(&text, stranger);
        text_string(&text, " accepts connections there; it does not belong to the program");
    } else {
        text_format(&text, "the program %s after %ld s; --ready-timeout=SECONDS waits longer",
                    request->scenario.port ? "does not accept connections on --ready-port"
                                           : "has not printed what --ready-log waits for",
                    request->scenario.timeout);
    }
    fail(text.bytes);
    text_free(&text);
}

void scenario_tick(void) {
    if (scenario_timeout() != 0)
        return;
    if (state == STATE_LOADING) {
        look_at_load();
    } else if (request->scenario.port && target_serves()) {
        become_ready();
    } else if (now_ms() > give_up) {
        state = STATE_DONE;
        fail_unready();
        stop_now();
    }
    next_look = now_ms() + (stranger ? LOOK_AGAIN_MS : LOOK_MS);
}

static void fail_early(int status) {
    struct text text = {0};
    text_string(&text, "the program ");
    text_end(&text, status);
    text_string(&text, " before it was ready");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        text_string(&text, "; a server must stay in the foreground");
    fail(text.bytes);
    text_free(&text);
}

void scenario_end(int status) {
    if (state == STATE_WAITING)
        fail_early(status);
    if (state == STATE_LOADING) {
        // A load that has done its work notices late that nobody serves any more.
        look_at_load();
        if (state == STATE_LOADING) {
            bool over = request->duration && now_ms() - ready >= request->duration * 1000;
            fail(over ? "the load was still running when --duration was over"
                      : "the program ended while the load was running");
            end_load();
        }
    }
    state = STATE_DONE;
    if (has_regex)
        regfree(&ready_line);
    has_regex = false;
    text_free(&lines[0]);
    text_free(&lines[1]);
}

bool scenario_failed(void) {
    return failed;
}
