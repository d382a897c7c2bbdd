#include "supervisor/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/control.h"
#include "base/fd.h"
#include "base/text.h"
#include "supervisor/hooks.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/present.h"
#include "supervisor/scenario.h"
#include "supervisor/followed.h"
#include "supervisor/stop.h"
#include "wire/wire_supervisor.h"

// What an epoll event is about: these, or else the pid of a process that has ended.
#define EVENT_SIGNAL  0
#define EVENT_WIRE    (1ull << 32)
#define EVENT_CONTROL (2ull << 32)
#define EVENT_OUTPUT  (3ull << 32) // and the next: of the target

struct loop {
    const struct supervisor_request *request;
    struct tool_run *run;
    const struct launch *launch;
    struct symbols *symbols;
    pid_t main_pid;
    int wire;
    int signals;
    int events;
    bool main_ended;
    bool wire_closed;
    bool background; // this is the collector
    bool complained; // about malformed packets
    int status;      // of the main process, once ended
};

static void watch(struct loop *loop, int fd, uint64_t about) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = about};
    if (fd >= 0)
        epoll_ctl(loop->events, EPOLL_CTL_ADD, fd, &event);
}

static struct followed *known(struct loop *loop, int pid) {
    bool made;
    struct followed *process = followed_add(pid, &made);
    if (made)
        watch(loop, process->pidfd, (uint64_t)(uint32_t)pid);
    return process;
}

static void forget(struct loop *loop, int pid) {
    struct followed *process = followed_find(pid);
    if (process)
        hooks_ended(loop->run, process);
    if (process && process->pidfd >= 0)
        epoll_ctl(loop->events, EPOLL_CTL_DEL, process->pidfd, NULL);
    followed_remove(pid);
    symbols_end(loop->symbols, pid);
    if (pid != loop->main_pid)
        log_drop_process(pid);
}

// When nobody holds the wire any more, nobody says anything more.
static void forget_all(struct loop *loop) {
    while (followed_count())
        forget(loop, followed_at(0)->pid);
}

// A process that was gone before it was heard of has no pidfd.
static bool has_ended(const struct followed *process) {
    struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
    if (process->pidfd < 0)
        return kill(process->pid, 0) < 0 && errno == ESRCH;
    return poll(&ended, 1, 0) == 1;
}

// Whoever ended before the main process did comes first, also when that was noticed only now.
static void forget_ended_children(struct loop *loop) {
    for (size_t i = 0; i < followed_count();) {
        const struct followed *process = followed_at(i);
        if (process->pid != loop->main_pid && has_ended(process))
            forget(loop, process->pid);
        else
            i++;
    }
}

// ---- messages ----

static void greet(struct loop *loop, struct followed *process, const struct wire_message *message) {
    const char *words[64];
    size_t count = 0;
    const char *end = (const char *)message->payload + message->size;
    const char *word = message->hello->path;
    for (word += strlen(word) + 1; word < end && count < 64; word += strlen(word) + 1)
        words[count++] = word;
    if (!count)
        return;
    hooks_began(loop->run, process);
    symbols_end(loop->symbols, process->pid);
    process->muted = false;
    // The first program's banner was printed before it started.
    bool first = process->pid == loop->main_pid && !process->greeted;
    process->greeted = true;
    struct text command = {0};
    for (size_t i = 0; i < count; i++)
        text_format(&command, "%s%s", i ? " " : "", words[i]);
    free(process->command);
    process->command = text_take(&command);
    followed_set_words(process, words, count);
    if (first)
        return;
    log_add_process(process->pid);
    present_banner(loop->request, process->pid, message->hello->ppid, words, count);
}

// Only the child's own word counts. A process that may name others could have them killed when the
// run is stopped, by a supervisor that may be more powerful than itself.
static void note_fork(struct loop *loop, const struct wire_message *message) {
    int child_pid = message->pid;
    if (child_pid == message->forked->parent || followed_find(child_pid))
        return;
    struct followed *child = known(loop, child_pid);
    symbols_fork(loop->symbols, message->forked->parent, child_pid);
    const struct followed *parent = followed_find(message->forked->parent);
    hooks_forked(loop->run, parent, child);
    child->greeted = true;
    if (parent && parent->command)
        child->command = base_copy(parent->command);
    child->muted = loop->request->silent_after_fork;
    if (child->muted)
        return;
    log_add_process(child_pid);
    // A document of its own needs a head; the log goes on.
    if (loop->request->xml.wanted && parent && parent->words) {
        size_t count = 0;
        while (parent->words[count])
            count++;
        followed_set_words(child, (const char *const *)parent->words, count);
        present_banner(loop->request, child_pid, parent->pid, (const char *const *)parent->words,
                       count);
    }
}

static void show_text(struct followed *process, const struct wire_message *message) {
    bool debug = message->type == WIRE_DEBUG;
    if (process->muted || (!debug && !log_shows(message->text->level)))
        return;
    log_print(process->pid, debug ? LOG_DEBUGGING : LOG_USER, message->text->text);
}

static void change_option(struct loop *loop, struct followed *process, const char *word) {
    const struct option_changer *changer = &loop->request->changer;
    if (!loop->request->tool->changed || !changer->change)
        return;
    char *said = changer->change(changer->context, word);
    if (!process->muted && log_shows(0))
        log_print(process->pid, LOG_USER, said);
    free(said);
}

static void take_message(struct loop *loop, const struct wire_message *message) {
    if (message->type == WIRE_FORKED) {
        note_fork(loop, message);
        return;
    }
    struct followed *process = known(loop, message->pid);
    process->away = false;
    switch (message->type) {
    case WIRE_HELLO:
        greet(loop, process, message);
        break;
    case WIRE_EXEC_AWAY:
        // The exec may still fail, so what is known of it is kept.
        process->away = true;
        break;
    case WIRE_FATAL_SIGNAL:
        process->fatal_shown = true;
        if (!process->muted)
            present_fatal_signal(loop->run, process->pid, message->fatal_signal);
        break;
    case WIRE_MODULE_MAP:
        symbols_map(loop->symbols, process->pid, message->module_map->start,
                    message->module_map->end, message->module_map->offset,
                    message->module_map->path, NULL);
        hooks_mapped(loop->run, process, message->module_map);
        break;
    case WIRE_MODULE_UNMAP:
        symbols_unmap(loop->symbols, process->pid, message->module_unmap->start,
                      message->module_unmap->end);
        hooks_unmapped(loop->run, process);
        break;
    case WIRE_NOTICE:
    case WIRE_DEBUG:
        show_text(process, message);
        break;
    case WIRE_OPTION:
        change_option(loop, process, message->text->text);
        break;
    case WIRE_PRINT:
        if (!process->muted)
            present_print(loop->run, process->pid, message->print);
        break;
    case WIRE_ENDING:
        process->ending = true;
        break;
    case WIRE_EXITING:
        break;
    default:
        hooks_message(loop->run, process, message);
    }
}

static void complain_once(struct loop *loop, enum wire_result result) {
    if (loop->complained)
        return;
    loop->complained = true;
    if (result == WIRE_OTHER)
        log_complain("quern and quern-engine are of different versions; install both from one "
                     "build");
    else
        log_complain("the target sent a malformed message; its reports may be incomplete");
}

// Takes what is waiting; the limit lets signals and deadlines have their turn in a flood.
static void drain_wire(struct loop *loop, int limit) {
    static _Alignas(16) char buffer[WIRE_MESSAGE_MAX];
    struct wire_message message;
    for (int i = 0; i != limit && !loop->wire_closed; i++) {
        enum wire_result result = wire_receive(loop->wire, buffer, &message);
        switch (result) {
        case WIRE_GOT:
            take_message(loop, &message);
            break;
        case WIRE_NOTHING:
            return;
        case WIRE_CLOSED:
            loop->wire_closed = true;
            epoll_ctl(loop->events, EPOLL_CTL_DEL, loop->wire, NULL);
            break;
        case WIRE_BAD:
        case WIRE_OTHER:
            complain_once(loop, result);
            break;
        }
    }
}

// ---- events ----

static void wait_for_main(struct loop *loop) {
    int status;
    while (!loop->main_ended &&
           waitpid(loop->main_pid, &status, WNOHANG | WUNTRACED) == loop->main_pid) {
        if (WIFSTOPPED(status)) {
            job_stopped(loop->main_pid, WSTOPSIG(status));
            continue;
        }
        loop->main_ended = true;
        loop->status = status;
    }
}

static void take_signals(struct loop *loop) {
    struct signalfd_siginfo info;
    while (read(loop->signals, &info, sizeof info) == sizeof info) {
        if (!loop->background)
            job_signal(loop->main_pid, &info);
        else if (info.ssi_signo == SIGTERM)
            _exit(0);
    }
}

// Of two times of which -1 is never.
static int sooner(int first, int second) {
    return first < 0 || (second >= 0 && second < first) ? second : first;
}

// The next deadline, or when the tool wants to drain. NULL: neither.
static struct timespec *round_timeout(struct loop *loop, struct timespec *timeout) {
    int64_t deadline = sooner(stop_timeout(), scenario_timeout()) * 1000000ll;
    int64_t look = hooks_timeout(loop->run);
    int64_t wait = look >= 0 && (deadline < 0 || look < deadline) ? look : deadline;
    *timeout = (struct timespec){.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    return wait < 0 ? NULL : timeout;
}

static void take_request(struct loop *loop) {
    char request[CONTROL_MOST];
    struct text answer = {0};
    const char *tool = loop->request->tool->name;
    int fd = control_next(loop->launch->control, request);
    if (fd < 0)
        return;
    drain_wire(loop, -1); // what is mapped where
    if (!hooks_request(loop->run, request, &answer)) {
        if (strcmp(request, "stop") == 0) {
            stop_now();
            text_string(&answer, "ok");
        } else if (strcmp(request, "status") == 0) {
            text_format(&answer, "ok tool %s, processes %zu, dumps 0", tool, followed_count());
        } else {
            text_format(&answer, "'%s' is nothing that tool %s can do here", request, tool);
        }
    }
    control_answer(fd, answer.bytes);
    text_free(&answer);
}

static void take_output(struct loop *loop, uint64_t which) {
    int from = loop->launch->output[which];
    if (!scenario_output(from, which == 1))
        epoll_ctl(loop->events, EPOLL_CTL_DEL, from, NULL);
}

static void one_round(struct loop *loop) {
    struct epoll_event events[64];
    struct timespec timeout;
    int count = epoll_pwait2(loop->events, events, 64, round_timeout(loop, &timeout), NULL);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == EVENT_SIGNAL) {
            take_signals(loop);
        } else if (events[i].data.u64 == EVENT_WIRE) {
            drain_wire(loop, 256);
        } else if (events[i].data.u64 >= EVENT_OUTPUT) {
            take_output(loop, events[i].data.u64 - EVENT_OUTPUT);
        } else if (events[i].data.u64 == EVENT_CONTROL) {
            take_request(loop);
        } else {
            // What the process said before it ended comes first.
            drain_wire(loop, -1);
            forget(loop, (int)events[i].data.u64);
        }
    }
    hooks_drain(loop->run);
    if (stop_is_next())
        hooks_stopping(loop->run);
    stop_tick(loop->main_pid);
    scenario_tick();
    if (!loop->background)
        wait_for_main(loop);
}

// ---- the collector ----

// Lets go of the terminal and of whatever else the standard descriptors lead to; somebody may be
// waiting for their end.
static void detach(struct loop *loop) {
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, 0);
        dup2(null, 1);
        if (log_is_apart())
            dup2(null, 2);
        if (null > 2)
            close(null);
    }
    loop->background = true;
}

// The main process has ended, but somebody still holds the wire: a server that went into the
// background, say. The prompt must come back all the same.
static void leave_to_collector(struct loop *loop) {
    if (fork() != 0)
        return;
    detach(loop);
    // A signalfd reports to the process that reads it, but its readiness belongs to the one that
    // added it to the epoll set; both are made anew.
    close(loop->events);
    loop->events = fd_move_high(epoll_create1(EPOLL_CLOEXEC));
    watch(loop, loop->signals, EVENT_SIGNAL);
    watch(loop, loop->wire, EVENT_WIRE);
    for (size_t i = 0; i < followed_count(); i++)
        watch(loop, followed_at(i)->pidfd, (uint64_t)(uint32_t)followed_at(i)->pid);
    while (!loop->wire_closed)
        one_round(loop);
    hooks_finish(loop->run);
    forget_all(loop);
    _exit(0);
}

int collect_until_end(struct tool_run *run, const struct launch *launch) {
    sigset_t all;
    launch_signals(&all);
    struct loop loop = {
        .request = run->request,
        .run = run,
        .launch = launch,
        .symbols = run->symbols,
        .main_pid = launch->pid,
        .wire = launch->wire,
        .signals = fd_move_high(signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC)),
        .events = fd_move_high(epoll_create1(EPOLL_CLOEXEC)),
    };
    watch(&loop, loop.signals, EVENT_SIGNAL);
    watch(&loop, loop.wire, EVENT_WIRE);
    bool made;
    followed_add(loop.main_pid, &made);
    hooks_started(run);
    scenario_begin(run->request, launch->pid);
    for (int i = 0; i < 2; i++)
        if (launch->output[i] >= 0)
            watch(&loop, launch->output[i], EVENT_OUTPUT + (uint64_t)i);
    wait_for_main(&loop);
    watch(&loop, launch->control, EVENT_CONTROL);
    while (!loop.main_ended)
        one_round(&loop);
    control_close(launch->control, launch->pid);
    for (int i = 0; i < 2; i++)
        if (launch->output[i] >= 0)
            scenario_output(launch->output[i], i == 1);
    scenario_end(loop.status);
    drain_wire(&loop, -1);
    forget_ended_children(&loop);
    struct followed *process = followed_find(loop.main_pid);
    if (WIFSIGNALED(loop.status) && process && !process->fatal_shown)
        present_killed(loop.main_pid, WTERMSIG(loop.status));
    forget(&loop, loop.main_pid);
    if (!loop.wire_closed) {
        leave_to_collector(&loop);
    } else {
        hooks_finish(loop.run);
        forget_all(&loop);
    }
    return loop.status;
}
