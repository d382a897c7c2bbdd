#include "supervisor/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/control.h"
#include "base/fd.h"
#include "base/text.h"
#include "supervisor/attached.h"
#include "supervisor/hooks.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/monitor.h"
#include "supervisor/present.h"
#include "supervisor/heartbeat.h"
#include "supervisor/unfollowed.h"
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
    struct job *job;
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
    struct unfollowed unfollowed;
    struct heartbeat heartbeat;
};

static void watch(struct loop *loop, int fd, uint64_t about) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = about};
    if (fd >= 0)
        epoll_ctl(loop->events, EPOLL_CTL_ADD, fd, &event);
}

static struct followed *known(struct loop *loop, int pid) {
    bool made;
    struct followed *process = followed_add(&loop->job->processes, pid, &made);
    if (made)
        watch(loop, process->pidfd, (uint64_t)(uint32_t)pid);
    return process;
}

static void forget(struct loop *loop, int pid) {
    struct followed *process = followed_find(&loop->job->processes, pid);
    if (process)
        hooks_ended(loop->run, process);
    if (process && process->pidfd >= 0)
        epoll_ctl(loop->events, EPOLL_CTL_DEL, process->pidfd, NULL);
    debugger_forget(&loop->job->debugger, pid);
    followed_remove(&loop->job->processes, pid);
    symbols_end(loop->symbols, pid);
    if (pid != loop->main_pid)
        log_drop_process(loop->job->log, pid);
}

// When nobody holds the wire any more, nobody says anything more.
static void forget_all(struct loop *loop) {
    while (loop->job->processes.count)
        forget(loop, loop->job->processes.items[0]->pid);
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
    const struct followed_table *processes = &loop->job->processes;
    for (size_t i = 0; i < processes->count;) {
        const struct followed *process = processes->items[i];
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
    process->execs = false;
    if (!count) {
        debugger_greeted(&loop->job->debugger, process);
        return;
    }
    hooks_began(loop->run, process);
    symbols_end(loop->symbols, process->pid);
    process->muted = false;
    // The first program's banner was printed before it started.
    bool first = process->pid == loop->main_pid && !process->greeted;
    process->greeted = true;
    debugger_greeted(&loop->job->debugger, process);
    struct text command = {0};
    for (size_t i = 0; i < count; i++)
        text_format(&command, "%s%s", i ? " " : "", words[i]);
    free(process->command);
    process->command = text_take(&command);
    followed_set_words(process, words, count);
    if (first)
        return;
    log_add_process(loop->job->log, process->pid);
    present_banner(loop->request, process->pid, message->hello->ppid, words, count);
}

// Only the child's own word counts. A process that may name others could have them killed when the
// run is stopped, by a supervisor that may be more powerful than itself.
static void note_fork(struct loop *loop, const struct wire_message *message) {
    int child_pid = message->pid;
    if (child_pid == message->forked->parent || followed_find(&loop->job->processes, child_pid))
        return;
    struct followed *child = known(loop, child_pid);
    symbols_fork(loop->symbols, message->forked->parent, child_pid);
    const struct followed *parent = followed_find(&loop->job->processes, message->forked->parent);
    hooks_forked(loop->run, parent, child);
    child->greeted = true;
    if (parent && parent->command)
        child->command = base_copy(parent->command);
    child->muted = loop->request->silent_after_fork;
    if (child->muted)
        return;
    log_add_process(loop->job->log, child_pid);
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

static void show_text(struct log *log, struct followed *process,
                      const struct wire_message *message) {
    bool debug = message->type == WIRE_DEBUG;
    if (process->muted || (!debug && !log_shows(log, message->text->level)))
        return;
    log_print(log, process->pid, debug ? LOG_DEBUGGING : LOG_USER, message->text->text);
}

static void change_option(struct loop *loop, struct followed *process, const char *word) {
    const struct option_changer *changer = &loop->request->changer;
    if (!loop->request->tool->changed || !changer->change)
        return;
    char *said = changer->change(changer->context, word);
    if (!process->muted && log_shows(loop->job->log, 0))
        log_print(loop->job->log, process->pid, LOG_USER, said);
    free(said);
}

// Whoever waited for a process expects that its last report is in the log. The end of that process
// may not have been noticed yet.
static void take_reaped(struct loop *loop, int pid) {
    const struct followed *process = followed_find(&loop->job->processes, pid);
    if (process && pid != loop->main_pid && has_ended(process))
        forget(loop, pid);
}

// ---- a process that was there before ----

static void begin_attached(struct loop *loop, const struct followed *process) {
    struct attached *attached = loop->job->attached;
    if (!attached || process->pid != loop->main_pid || attached->is_recording)
        return;
    attached->has_failed = !attached_begin(attached, loop->run);
    if (attached->has_failed)
        return;
    stop_after(&loop->job->stop, loop->request->duration);
    hooks_attached(loop->run);
}

// It goes on, or has ended: the run is over.
static void leave_attached(struct loop *loop, bool is_gone) {
    struct job *job = loop->job;
    if (!is_gone)
        hooks_stopping(loop->run);
    attached_leave(job->attached, loop->launch, loop->run, is_gone);
    loop->main_ended = true;
    loop->status = job->attached->has_failed ? 1 << 8 : 0;
}

static void look_after_attached(struct loop *loop) {
    const struct followed *process = followed_find(&loop->job->processes, loop->main_pid);
    bool is_gone = loop->wire_closed || !process || has_ended(process);
    if (is_gone || loop->job->attached->has_failed || stop_timeout(&loop->job->stop) == 0)
        leave_attached(loop, is_gone);
}

static void take_message(struct loop *loop, const struct wire_message *message) {
    if (message->type == WIRE_FORKED) {
        note_fork(loop, message);
        return;
    }
    struct followed *process = known(loop, message->pid);
    free(process->away);
    process->away = NULL;
    switch (message->type) {
    case WIRE_HELLO:
        greet(loop, process, message);
        break;
    case WIRE_EXEC_AWAY:
        // The exec may still fail, so what is known of it is kept.
        process->away = base_copy(message->exec_away->path);
        process->away_reason = (int)message->exec_away->reason;
        break;
    case WIRE_EXEC:
        process->execs = true;
        debugger_execs(&loop->job->debugger, process);
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
        show_text(loop->job->log, process, message);
        break;
    case WIRE_OPTION:
        change_option(loop, process, message->text->text);
        break;
    case WIRE_PRINT:
        if (!process->muted)
            present_print(loop->run, process->pid, message->print);
        break;
    case WIRE_DEBUGGER:
    case WIRE_WAITS_FOR_DEBUGGER:
        debugger_take_process(&loop->job->debugger, process, message->fd,
                              message->type == WIRE_WAITS_FOR_DEBUGGER);
        break;
    case WIRE_MONITOR:
        debugger_monitor(&loop->job->debugger, loop->run, process, message->text->level,
                         message->text->text);
        break;
    case WIRE_ENDING:
        process->ending = true;
        break;
    case WIRE_EXITING:
        break;
    case WIRE_ATTACHED:
        begin_attached(loop, process);
        break;
    case WIRE_REAPED:
        take_reaped(loop, message->reaped->pid);
        break;
    default:
        if (!hooks_message(loop->run, process, message) && message->type == WIRE_FINDING &&
            finding_kind_is_core(message->finding->facts.kind) && !process->muted)
            present_finding(loop->run, process->pid, message->finding);
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

// False: nothing was waiting.
static bool take_next(struct loop *loop) {
    static _Alignas(16) char buffer[WIRE_MESSAGE_MAX];
    struct wire_message message;
    enum wire_result result = wire_receive(loop->wire, buffer, &message);
    switch (result) {
    case WIRE_GOT:
        take_message(loop, &message);
        break;
    case WIRE_NOTHING:
        return false;
    case WIRE_CLOSED:
        loop->wire_closed = true;
        epoll_ctl(loop->events, EPOLL_CTL_DEL, loop->wire, NULL);
        break;
    case WIRE_BAD:
    case WIRE_OTHER:
        complain_once(loop, result);
        break;
    }
    wire_board_took();
    return true;
}

// Takes what is waiting; the limit lets signals and deadlines have their turn in a flood.
static void drain_wire(struct loop *loop, int limit) {
    bool is_more = true;
    wire_board_working();
    for (int i = 0; is_more && i != limit && !loop->wire_closed; i++)
        is_more = take_next(loop);
    wire_board_end_turn(!is_more || loop->wire_closed);
}

// ---- events ----

// Takes what only a process that is not reaped yet can tell.
static void look_at_main(struct loop *loop) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)loop->main_pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
        return;
    unfollowed_read(loop->main_pid, &loop->unfollowed);
    struct followed *process = followed_find(&loop->job->processes, loop->main_pid);
    if (process && info.si_code == CLD_EXITED)
        snprintf(process->ended_as, sizeof process->ended_as, "%s", loop->unfollowed.name);
}

static void wait_for_main(struct loop *loop) {
    int status;
    if (loop->job->attached)
        return;
    if (!loop->main_ended)
        look_at_main(loop);
    while (!loop->main_ended &&
           waitpid(loop->main_pid, &status, WNOHANG | WUNTRACED) == loop->main_pid) {
        if (WIFSTOPPED(status)) {
            job_stopped(loop->job, WSTOPSIG(status));
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
            job_signal(loop->job, &info);
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
    int64_t deadline =
        sooner(sooner(stop_timeout(&loop->job->stop), scenario_timeout(&loop->job->scenario)),
               heartbeat_timeout(&loop->heartbeat)) *
        1000000ll;
    int64_t look = hooks_timeout(loop->run);
    int64_t wait = look >= 0 && (deadline < 0 || look < deadline) ? look : deadline;
    *timeout = (struct timespec){.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    return wait < 0 ? NULL : timeout;
}

// `quern vgdb` lists what it can connect to.
static void list_processes(struct loop *loop, struct text *answer) {
    const char *prefix = loop->request->debugger.prefix;
    text_string(answer, "ok");
    for (size_t i = 0; i < loop->job->processes.count; i++) {
        const struct followed *process = loop->job->processes.items[i];
        text_format(answer, "\n%d %s %s", process->pid, prefix ? prefix : "-",
                    process->command ? process->command : loop->request->argv[0]);
    }
}

static void take_request(struct loop *loop) {
    char request[CONTROL_MOST];
    struct text answer = {0};
    const char *tool = loop->request->tool->name;
    int fd = control_next(loop->launch->control, request);
    if (fd < 0)
        return;
    drain_wire(loop, -1); // what is mapped where
    if (strncmp(request, "debug ", 6) == 0) {
        const struct followed *process = followed_find(&loop->job->processes, atoi(request + 6));
        const char *refusal = debugger_connect(&loop->job->debugger, loop->request, process, fd);
        if (refusal)
            control_answer(fd, refusal);
        return;
    }
    if (strcmp(request, "processes") == 0)
        list_processes(loop, &answer);
    else if (!hooks_request(loop->run, request, &answer)) {
        if (strcmp(request, "stop") == 0) {
            stop_now(&loop->job->stop);
            text_string(&answer, "ok");
        } else if (strcmp(request, "status") == 0) {
            text_format(&answer, "ok tool %s, processes %zu, dumps 0", tool,
                        loop->job->processes.count);
        } else if (monitor_is_command(loop->request, request)) {
            text_string(&answer, CONTROL_GIVE_COMMAND);
        } else {
            text_format(&answer, "tool %s has no request '%s' in this run", tool, request);
        }
    }
    control_answer(fd, answer.bytes);
    text_free(&answer);
}

static void take_output(struct loop *loop, uint64_t which) {
    int from = loop->launch->output[which];
    if (!scenario_output(&loop->job->scenario, from, which == 1))
        epoll_ctl(loop->events, EPOLL_CTL_DEL, from, NULL);
}

// A process that was gone before it was heard of has no pidfd to report its end. 0: there is none.
static int find_unwatched(const struct loop *loop) {
    const struct followed_table *processes = &loop->job->processes;
    for (size_t i = 0; i < processes->count; i++) {
        const struct followed *process = processes->items[i];
        if (process->pidfd < 0 && process->pid != loop->main_pid && has_ended(process))
            return process->pid;
    }
    return 0;
}

// What the process said before it ended comes first.
static void forget_unwatched(struct loop *loop) {
    for (int pid; (pid = find_unwatched(loop));) {
        drain_wire(loop, -1);
        forget(loop, pid);
    }
}

static void one_round(struct loop *loop) {
    struct epoll_event events[64];
    struct timespec timeout;
    heartbeat_step(&loop->heartbeat, loop->job->log, loop->main_pid);
    int count = epoll_pwait2(loop->events, events, 64, round_timeout(loop, &timeout), NULL);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == EVENT_SIGNAL) {
            take_signals(loop);
        } else if (events[i].data.u64 == EVENT_WIRE) {
            drain_wire(loop, 256);
        } else if (events[i].data.u64 >= DEBUGGER_EVENT) {
            debugger_take_event(&loop->job->debugger, (int)(events[i].data.u64 - DEBUGGER_EVENT));
        } else if (events[i].data.u64 >= EVENT_OUTPUT) {
            take_output(loop, events[i].data.u64 - EVENT_OUTPUT);
        } else if (events[i].data.u64 == EVENT_CONTROL) {
            take_request(loop);
        } else {
            // What the process said before it ended comes first.
            drain_wire(loop, -1);
            if (!loop->job->attached)
                forget(loop, (int)events[i].data.u64);
        }
    }
    hooks_drain(loop->run);
    if (loop->job->attached) {
        look_after_attached(loop);
        return;
    }
    forget_unwatched(loop);
    if (stop_is_next(&loop->job->stop))
        hooks_stopping(loop->run);
    stop_tick(&loop->job->stop);
    scenario_tick(&loop->job->scenario);
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
        if (log_is_apart(loop->job->log))
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
    loop->heartbeat = (struct heartbeat){0};
    loop->events = fd_move_high(epoll_create1(EPOLL_CLOEXEC));
    watch(loop, loop->signals, EVENT_SIGNAL);
    watch(loop, loop->wire, EVENT_WIRE);
    debugger_use_events(&loop->job->debugger, loop->events);
    for (size_t i = 0; i < loop->job->processes.count; i++) {
        const struct followed *process = loop->job->processes.items[i];
        watch(loop, process->pidfd, (uint64_t)(uint32_t)process->pid);
    }
    while (!loop->wire_closed)
        one_round(loop);
    hooks_finish(loop->run);
    forget_all(loop);
    _exit(0);
}

int collect_until_end(struct tool_run *run, const struct launch *launch) {
    struct job *job = run->request->job;
    sigset_t all;
    launch_signals(&all);
    struct loop loop = {
        .request = run->request,
        .run = run,
        .launch = launch,
        .job = job,
        .symbols = run->symbols,
        .main_pid = launch->pid,
        .wire = launch->wire,
        .signals = fd_move_high(signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC)),
        .events = fd_move_high(epoll_create1(EPOLL_CLOEXEC)),
    };
    watch(&loop, loop.signals, EVENT_SIGNAL);
    watch(&loop, loop.wire, EVENT_WIRE);
    debugger_use_events(&job->debugger, loop.events);
    heartbeat_start(&loop.heartbeat, run->request->progress);
    bool made;
    struct followed *first = followed_add(&job->processes, loop.main_pid, &made);
    if (job->attached)
        watch(&loop, first->pidfd, (uint64_t)(uint32_t)loop.main_pid);
    hooks_started(run);
    scenario_begin(&job->scenario, run->request);
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
            scenario_output(&job->scenario, launch->output[i], i == 1);
    scenario_end(&job->scenario, loop.status);
    drain_wire(&loop, -1);
    loop.wire_closed |= job->attached != NULL;
    forget_ended_children(&loop);
    struct followed *process = followed_find(&job->processes, loop.main_pid);
    if (WIFSIGNALED(loop.status) && process && !process->fatal_shown)
        present_killed(job->log, loop.main_pid, WTERMSIG(loop.status));
    if (process && process->away)
        present_away(job->log, loop.main_pid, process->away, process->away_reason);
    else if (unfollowed_had_the_work(&loop.unfollowed))
        present_unfollowed(loop.request, loop.main_pid);
    forget(&loop, loop.main_pid);
    if (!loop.wire_closed) {
        leave_to_collector(&loop);
    } else {
        hooks_finish(loop.run);
        forget_all(&loop);
    }
    return loop.status;
}
