#include "supervisor/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "supervisor/hooks.h"
#include "supervisor/log.h"
#include "supervisor/scenario.h"
#include "wire/wire_start.h"
#include "wire/wire_supervisor.h"

extern char **environ;

// With an unlimited stack the kernel lays mappings out from the bottom up, where the target's own
// addresses are. The engine then could not keep its distance.
#define STACK_LIMIT (8ul << 20)

static sigset_t given_mask;
static struct sigaction given_child_action;
static struct rlimit given_files;
static struct rlimit given_stack;

void launch_signals(sigset_t *set) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

void launch_prepare(void) {
    sigset_t events;
    launch_signals(&events);
    sigprocmask(SIG_SETMASK, &events, &given_mask);
    // An ignored SIGCHLD would throw the target's exit status away.
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &plain, &given_child_action);
    getrlimit(RLIMIT_STACK, &given_stack);
    getrlimit(RLIMIT_NOFILE, &given_files);
    struct rlimit files = {given_files.rlim_max, given_files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &files);
}

static bool pipe_high(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    ends[0] = fd_move_high(ends[0]);
    ends[1] = fd_move_high(ends[1]);
    return ends[0] >= 0 && ends[1] >= 0;
}

static bool stack_was_unlimited(void) {
    return given_stack.rlim_cur == RLIM_INFINITY;
}

static int write_config(const struct supervisor_request *request) {
    size_t count = request->option_count;
    struct text engine = {0};
    struct text parent = {0};
    struct text supervisor = {0};
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
    if (stack_was_unlimited())
        options[count++] = "stack-limit=unlimited";
    int fd = wire_config_write(options, count);
    free(options);
    text_free(&engine);
    text_free(&parent);
    text_free(&supervisor);
    return fd;
}

void launch_keep(int fd) {
    fcntl(fd, F_SETFD, 0);
}

static void put_back_what_was_given(bool translated) {
    sigaction(SIGCHLD, &given_child_action, NULL);
    setrlimit(RLIMIT_NOFILE, &given_files);
    if (translated && stack_was_unlimited()) {
        struct rlimit stack = {STACK_LIMIT, given_stack.rlim_max};
        setrlimit(RLIMIT_STACK, &stack);
    }
    sigprocmask(SIG_SETMASK, &given_mask, NULL);
}

static void run_translated(const struct supervisor_request *request, int wire, int config) {
    struct wire_start start = {.wire = wire,
                               .config = config,
                               .path = request->program,
                               .argv = (char **)request->argv,
                               .envp = environ};
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
static void become_target(struct tool_run *run, pid_t supervisor, int gate, int failure, int wire,
                          int config, const int outputs[2]) {
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
    put_back_what_was_given(!runs_natively(request));
    if (runs_natively(request)) {
        hooks_enter(run, wire, config);
        execv(request->program, request->argv);
    } else {
        launch_keep(wire);
        launch_keep(config);
        run_translated(request, wire, config);
    }
    int error = errno;
    if (write(failure, &error, sizeof error) < 0)
        _exit(1);
    _exit(1);
}

// Pipes for what the target prints, if somebody wants to read it.
static bool open_outputs(struct launch *launch, const struct supervisor_request *request,
                         int outputs[2]) {
    launch->output[0] = launch->output[1] = -1;
    for (int i = 0; scenario_wants_output(request) && i < 2; i++) {
        int ends[2];
        if (!pipe_high(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
            return false;
        launch->output[i] = ends[0];
        outputs[i] = ends[1];
    }
    return true;
}

bool launch_start(struct launch *launch, struct tool_run *run) {
    const struct supervisor_request *request = run->request;
    int wire[2];
    int gate[2];
    int failure[2];
    int error = wire_open(wire);
    launch->config = error ? -1 : write_config(request);
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
        become_target(run, supervisor, gate[0], failure[1], wire[1], launch->config, outputs);
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
