#include "supervisor/scenario.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <regex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervisor/log.h"
#include "supervisor/stop.h"

enum { LOOK_MS = 50, LINE_MOST = 65536 };

enum state { STATE_IDLE, STATE_WAITING, STATE_LOADING, STATE_DONE };

static const struct supervisor_request *request;
static int main_pid;
static enum state state;
static bool failed;
static int64_t next_look, give_up;
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
    give_up = now_ms() + settings->timeout * 1000;
}

// ---- the load ----------------------------------------------------------------------------------

static void run_load(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, 0);
    char number[16];
    snprintf(number, sizeof number, "%d", main_pid);
    setenv("QUERN_PID", number, 1);
    execl("/bin/sh", "sh", "-c", request->scenario.load, (char *)NULL);
    _exit(127);
}

static void become_ready(void) {
    state = STATE_DONE;
    stop_after(request->duration);
    if (!request->scenario.load)
        return;
    load_pid = fork();
    if (load_pid == 0)
        run_load();
    state = STATE_LOADING;
    if (load_pid < 0) {
        fail("cannot start the load");
        state = STATE_DONE;
        stop_now();
    }
}

static void look_at_load(void) {
    int status;
    if (waitpid(load_pid, &status, WNOHANG) != load_pid)
        return;
    state = STATE_DONE;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        struct text text = {0};
        text_format(&text, "the load '%s' ", request->scenario.load);
        if (WIFEXITED(status))
            text_format(&text, "ended with status %d", WEXITSTATUS(status));
        else
            text_format(&text, "was ended by signal %d", WTERMSIG(status));
        fail(text.bytes);
        text_free(&text);
    }
    stop_now();
}

// ---- readiness ---------------------------------------------------------------------------------

static bool accepts(int family, const struct sockaddr *address, socklen_t size) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool connected = connect(fd, address, size) == 0;
    close(fd);
    return connected;
}

static bool port_is_open(int port) {
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return accepts(AF_INET, (const struct sockaddr *)&four, sizeof four) ||
           accepts(AF_INET6, (const struct sockaddr *)&six, sizeof six);
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

void scenario_tick(void) {
    if (scenario_timeout() != 0)
        return;
    next_look = now_ms() + LOOK_MS;
    if (state == STATE_LOADING) {
        look_at_load();
    } else if (request->scenario.port && port_is_open(request->scenario.port)) {
        become_ready();
    } else if (now_ms() > give_up) {
        state = STATE_DONE;
        fail(request->scenario.port ? "the program does not accept connections on --ready-port; "
                                      "--ready-timeout=SECONDS waits longer"
                                    : "the program has not printed what --ready-log waits for; "
                                      "--ready-timeout=SECONDS waits longer");
        stop_now();
    }
}

void scenario_end(void) {
    if (state == STATE_WAITING)
        fail("the program ended before it was ready");
    if (state == STATE_LOADING) {
        // A load that has done its work notices late that nobody serves any more.
        look_at_load();
        if (state == STATE_LOADING) {
            fail("the program ended while the load was running");
            kill(load_pid, SIGTERM);
            waitpid(load_pid, NULL, 0);
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
