#include "supervisor/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervisor/hooks.h"
#include "supervisor/log.h"
#include "supervisor/scenario.h"
#include "wire/wire_supervisor.h"

extern char **environ;

// The engine's own stack, and with it the room for the target's arguments. With an unlimited stack
// the kernel lays mappings out from the bottom up, where the target's own addresses are. The engine
// then could not keep its distance.
#define STACK_LIMIT (64ul << 20)

enum { OWN_DESCRIPTORS = 64 };

void launch_signals(sigset_t *set) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

// Raises what this process may use as far as it is permitted. Its own stack stays as it is.
static void raise_limits(struct rlimit given[WIRE_LIMITS]) {
    for (int i = 0; i < WIRE_LIMITS; i++) {
        int resource = wire_limit_resources[i];
        getrlimit(resource, &given[i]);
        struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
        if (i == WIRE_LIMIT_NOFILE)
            most.rlim_cur = most.rlim_max = given[i].rlim_max + OWN_DESCRIPTORS;
        if (i == WIRE_LIMIT_STACK || setrlimit(resource, &most) == 0)
            continue;
        most.rlim_cur = most.rlim_max = given[i].rlim_max;
        setrlimit(resource, &most);
    }
}

void launch_prepare(struct launch *launch) {
    sigset_t events;
    launch_signals(&events);
    sigprocmask(SIG_SETMASK, &events, &launch->given.mask);
    // An ignored SIGCHLD would throw the target's exit status away.
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &plain, &launch->given.child_action);
    raise_limits(launch->given.limits);
}

static bool pipe_high(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    ends[0] = fd_move_high(ends[0]);
    ends[1] = fd_move_high(ends[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

int launch_config(const struct supervisor_request *request) {
    size_t count = request->option_count;
    struct text engine = {0};
    struct text parent = {0};
    struct text supervisor = {0};
    struct text debugger = {0};
    const char **options = base_allocate((count + 4) * sizeof *options);
    if (count)
        memcpy(options, request->options, count * sizeof *options);
    text_format(&engine, "engine-path=%s", request->engine ? request->engine : "");
    if (request->engine)
        options[count++] = engine.bytes;
    // Natively the target's parent would be ours.
    text_format(&parent, "parent-pid=%d", getppid());
    options[count++] = parent.bytes;
    text_format(&supervisor, "supervisor-pid=%d", getpid());
    options[count++] = supervisor.bytes;
    text_format(&debugger, "debugger-command=%s vgdb",
                request->own_words ? request->own_words[0] : "quern");
    options[count++] = debugger.bytes;
    int fd = wire_config_write(options, count);
    free(options);
    text_free(&engine);
    text_free(&parent);
    text_free(&supervisor);
    text_free(&debugger);
    return fd;
}

void launch_keep(int fd) {
    fcntl(fd, F_SETFD, 0);
}

static void put_back_what_was_given(const struct launch_given *given, bool translated) {
    sigaction(SIGCHLD, &given->child_action, NULL);
    if (translated) {
        rlim_t most = given->limits[WIRE_LIMIT_STACK].rlim_max;
        struct rlimit stack = {most < STACK_LIMIT ? most : STACK_LIMIT, most};
        setrlimit(RLIMIT_STACK, &stack);
    } else {
        for (int i = 0; i < WIRE_LIMITS; i++)
            setrlimit(wire_limit_resources[i], &given->limits[i]);
    }
    sigprocmask(SIG_SETMASK, &given->mask, NULL);
}

static void run_translated(const struct supervisor_request *request,
                           const struct launch_given *given, int wire, int config) {
    struct wire_start start = {.wire = wire,
                               .config = config,
                               .path = request->program,
                               .argv = (char **)request->argv,
                               .envp = environ};
    memcpy(start.limits, given->limits, sizeof start.limits);
    struct wire_start_line line;
    line.vector = base_allocate(wire_start_size(start.argv, environ) * sizeof *line.vector);
    wire_start_write(&line, request->engine, &start);
    execve(request->engine, line.vector, (char *[]){NULL});
}

void launch_preload(const char *library) {
    struct text text = {0};
    const char *others = getenv("LD_PRELOAD");
    text_format(&text, "%s%s%s", library, others && *others ? ":" : "", others ? others : "");
    setenv("LD_PRELOAD", text.bytes, 1);
    text_free(&text);
}

static bool runs_natively(const struct supervisor_request *request) {
    return !request->engine;
}

// The child, up to the exec. `gate` opens with one byte once the banner is out; without one the
// supervisor is gone.
static void become_target(const struct launch *launch, struct tool_run *run, pid_t supervisor,
                          int gate, int failure, int wire, const int outputs[2]) {
    const struct supervisor_request *request = run->request;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(1);
    char byte;
    ssize_t got;
    do
        got = read(gate, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(1);

    for (int i = 0; i < 2; i++)
        if (outputs[i] >= 0)
            dup2(outputs[i], 1 + i);
    put_back_what_was_given(&launch->given, !runs_natively(request));
    if (runs_natively(request)) {
        hooks_enter(run, wire, launch->config);
        execv(request->program, request->argv);
    } else {
        launch_keep(wire);
        launch_keep(launch->config);
        run_translated(request, &launch->given, wire, launch->config);
    }
    int error = errno;
    if (write(failure, &error, sizeof error) < 0)
        _exit(1);
    _exit(1);
}

// A terminal that changes nothing: ends[0] reads what is written to ends[1].
static bool open_terminal(int ends[2]) {
    struct termios settings;
    struct winsize size;
    int control = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal = -1;
    char name[64];
    if (control >= 0 && grantpt(control) == 0 && unlockpt(control) == 0 &&
        ptsname_r(control, name, sizeof name) == 0)
        terminal = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || tcgetattr(terminal, &settings) < 0)
        return false;
    cfmakeraw(&settings);
    tcsetattr(terminal, TCSANOW, &settings);
    if (ioctl(1, TIOCGWINSZ, &size) == 0)
        ioctl(terminal, TIOCSWINSZ, &size);
    ends[0] = fd_move_high(control);
    ends[1] = fd_move_high(terminal);
    return ends[0] >= 0 && ends[1] >= 0;
}

// Pipes, or a terminal, for what the target prints, if somebody wants to read it.
static bool open_outputs(struct launch *launch, const struct supervisor_request *request,
                         int outputs[2]) {
    launch->output[0] = launch->output[1] = -1;
    for (int i = 0; scenario_wants_output(request) && i < 2; i++) {
        int ends[2];
        bool is_terminal = i == 0 && request->scenario.is_terminal;
        if (!(is_terminal ? open_terminal(ends) : pipe_high(ends)) ||
            fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
            return false;
        launch->output[i] = ends[0];
        outputs[i] = ends[1];
    }
    return true;
}

// Hard limits that leave too little for a run. False after a message.
static bool limits_suffice(bool translated) {
    static const struct {
        enum wire_limit limit;
        rlim_t least;
        bool natively; // in native runs, too
        const char *what, *least_text;
        char option; // of ulimit
    } needs[] = {{WIRE_LIMIT_DATA, 64 << 20, false, "data", "65536 KiB", 'd'},
                 {WIRE_LIMIT_FSIZE, 64 << 10, true, "the size of files", "64 KiB", 'f'},
                 {WIRE_LIMIT_NOFILE, 20, true, "open files", "20", 'n'}};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        struct rlimit now;
        getrlimit(wire_limit_resources[needs[i].limit], &now);
        if (now.rlim_max >= needs[i].least || !(translated || needs[i].natively))
            continue;
        log_complain(
            "the hard limit on %s (ulimit -H%c) leaves too little for Quern, which needs %s; "
            "to limit the program, lower the soft limit only: ulimit -S%c",
            needs[i].what, needs[i].option, needs[i].least_text, needs[i].option);
        return false;
    }
    return true;
}

bool launch_start(struct launch *launch, struct tool_run *run) {
    const struct supervisor_request *request = run->request;
    if (!limits_suffice(!runs_natively(request)))
        return false;
    int wire[2];
    int gate[2];
    int failure[2];
    int error = wire_open(wire);
    launch->config = error ? -1 : launch_config(request);
    int outputs[2] = {-1, -1};
    if (error || launch->config < 0 || !pipe_high(gate) || !pipe_high(failure) ||
        !open_outputs(launch, request, outputs)) {
        log_complain("cannot set up the run: %s", strerror(error ? error : errno));
        return false;
    }
    pid_t supervisor = getpid();
    launch->pid = fork();
    if (launch->pid == 0) {
        close(gate[1]);
        become_target(launch, run, supervisor, gate[0], failure[1], wire[1], outputs);
    }
    error = errno;
    close(gate[0]);
    close(failure[1]);
    for (int i = 0; i < 2; i++)
        if (outputs[i] >= 0)
            close(outputs[i]);
    launch->wire = wire[0];
    launch->wire_other = wire[1];
    launch->gate = gate[1];
    launch->failure = failure[0];
    if (launch->pid < 0)
        log_complain("cannot start a process: %s", strerror(error));
    return launch->pid > 0;
}

bool launch_release(struct launch *launch, const struct supervisor_request *request) {
    close(launch->wire_other);
    close(launch->config);
    launch->wire_other = launch->config = -1;
    fd_write_all(launch->gate, "", 1);
    close(launch->gate);
    int error = 0;
    ssize_t got;
    do
        got = read(launch->failure, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    close(launch->failure);
    if (got != sizeof error)
        return true;
    waitpid(launch->pid, NULL, 0);
    if (runs_natively(request))
        log_complain("cannot run '%s': %s", request->program, strerror(error));
    else
        log_complain("cannot start the engine '%s': %s; reinstall or rebuild Quern",
                     request->engine, strerror(error));
    return false;
}

void launch_abandon(struct launch *launch) {
    kill(launch->pid, SIGKILL);
    waitpid(launch->pid, NULL, 0);
}
