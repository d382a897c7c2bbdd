#include "engine/debug/stop.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/cache/breakpoints.h"
#include "engine/debug/channel.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/process.h"
#include "engine/task.h"
#include "engine/translate/translate.h"
#include "engine/translate/watch.h"
#include "wire/wire_target.h"

enum { NEVER = 999999999 }; // Valgrind's default of --vgdb-error

bool debug_attached;
uint64_t debug_error_limit = NEVER;
static bool is_enabled, stops_at_start, stops_at_exit, stops_at_abnormal_exit;
static struct debug_resume resume; // of the stop that is under way, or just over

// ---- options -----------------------------------------------------------------------------------

static bool has_word(const char *list, const char *word) {
    size_t size = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += size)
        if ((at == list || at[-1] == ',') && (at[size] == 0 || at[size] == ','))
            return true;
    return false;
}

void debug_init(void) {
    const char *mode = wire_option("vgdb");
    const char *at = wire_option("vgdb-stop-at");
    is_enabled = mode && strcmp(mode, "no") != 0;
    if (!is_enabled)
        return;
    bool all = has_word(at, "all");
    debug_error_limit = (uint64_t)wire_option_number("vgdb-error", NEVER);
    stops_at_start = all || debug_error_limit == 0 || has_word(at, "startup");
    stops_at_exit = all || has_word(at, "exit");
    stops_at_abnormal_exit = all || stops_at_exit || has_word(at, "abexit");
}

// ---- breakpoints -------------------------------------------------------------------------------

void debug_drop_code(uint64_t start, uint64_t end) {
    memory_read_lock();
    cache_lock();
    cache_invalidate(start, end);
    cache_unlock();
    memory_unlock();
}

bool debug_insert(uint64_t pc) {
    if (!breakpoint_add(pc))
        return false;
    debug_drop_code(pc, pc + 1);
    return true;
}

bool debug_remove(uint64_t pc) {
    if (!breakpoint_remove(pc))
        return false;
    debug_drop_code(pc, pc + 1);
    return true;
}

static bool is_flush_wanted;

void debug_flush_later(void) {
    is_flush_wanted = true;
}

static void detach(void) {
    if (watch_count)
        debug_flush_later();
    watch_remove_all();
    while (breakpoint_count)
        debug_remove(breakpoint_get(0));
    for (struct task *task = (struct task *)task_first(); task; task = task->next)
        task->debug.step = STEP_NONE;
    channel_close();
    debug_attached = false;
}

void debug_forked(void) {
    if (!debug_attached)
        return;
    // Steps and breakpoints were for the parent. Calls that look at accesses find nothing to watch.
    detach();
    is_flush_wanted = false;
    memset(&self->debug, 0, sizeof self->debug);
}

void debug_thread_ends(void) {
    siginfo_t info = {.si_signo = WIRE_DEBUG_SIGNAL, .si_code = WIRE_DEBUG_CODE};
    if (self->pending & PENDING_DEBUG && !self->is_borrowed)
        syscall(SYS_rt_sigqueueinfo, getpid(), WIRE_DEBUG_SIGNAL, &info);
}

void debug_before_exec(void) {
    enum { ROUNDS = 100 }; // in case that signals cut each of them short
    if (!is_enabled)
        return;
    wire_send(WIRE_EXEC, NULL, 0);
    for (int i = 0; i < ROUNDS && !wire_is_settled(); i++)
        wire_settle();
}

// ---- a stop ------------------------------------------------------------------------------------

static const char *words_of(enum debug_event event) {
    return event == DEBUG_START   ? "at startup"
           : event == DEBUG_EXIT  ? "at exit"
           : event == DEBUG_ERROR ? "on error"
                                  : NULL;
}

static void say_how_to_connect(void) {
    const char *command = wire_option("debugger-command");
    log_notice("\nTO DEBUG THIS PROCESS USING GDB: start GDB like this\n"
               "  /path/to/gdb %s\n"
               "and then give GDB the following command\n"
               "  target remote | %s --pid=%d\n"
               "--pid is optional if only one process runs under Quern\n\n",
               process.program, command ? command : "vgdb", getpid());
}

// The process waits until somebody connects. False: it cannot, or need not any more.
static bool connect_to_gdb(enum debug_event event) {
    static bool is_explained;
    if (debug_attached)
        return true;
    if (!is_enabled || !channel_open(event != DEBUG_ASKED))
        return false;
    if (event != DEBUG_ASKED && !is_explained) {
        say_how_to_connect();
        is_explained = true;
    }
    debug_attached = true;
    packets_begin();
    return true;
}

// Lets the threads go on as gdb has asked for. The calling thread is between two instructions.
static void go_on(void) {
    struct task *only = resume.only;
    if (is_flush_wanted)
        translate_start_over(LOOKUP_TABLE);
    is_flush_wanted = false;
    watch_renew();
    if (only)
        task_let_alone(only);
    else
        task_resume_all();
    task_become_busy();
}

// The other threads are stopped.
static void serve(enum debug_event event, int signal) {
    const char *words = words_of(event);
    self->debug.step = STEP_NONE;
    task_let_alone(self); // what the tool does for gdb may want to stop the others, too
    resume = (struct debug_resume){0};
    if (words)
        log_notice("(action %s) vgdb me ... ", words);
    if (connect_to_gdb(event))
        packets_serve(event, signal, &resume);
    else
        resume.detaches = true;
    if (resume.detaches) {
        detach();
        resume.only = NULL;
    }
    if (words && event != DEBUG_START)
        log_notice("Continuing ...");
}

static void stop(enum debug_event event, int signal) {
    task_stop_others();
    if (event == DEBUG_BREAKPOINT && !breakpoint_at(self->pc)) {
        task_resume_others(); // gdb has removed it while another thread was served
        task_become_busy();
        return;
    }
    serve(event, signal);
    go_on();
}

// ---- what leads to stops -----------------------------------------------------------------------

void debug_start(void) {
    if (stops_at_start)
        stop(DEBUG_START, SIGTRAP);
}

// gdb has sent something while the target was running, or wants to connect.
static void answer_request(void) {
    task_stop_others();
    const char *packet;
    bool has_input = debug_attached && channel_has_input();
    if (has_input && channel_receive(&packet) != CHANNEL_INTERRUPT) {
        detach();
        has_input = false; // the next gdb may have asked already, by the same signal
    }
    if (has_input || !debug_attached) {
        serve(has_input ? DEBUG_INTERRUPT : DEBUG_ASKED, has_input ? SIGINT : 0);
        go_on();
        return;
    }
    task_resume_others();
    task_become_busy();
}

void debug_pending(void) {
    __atomic_and_fetch(&self->pending, ~PENDING_DEBUG, __ATOMIC_SEQ_CST);
    if (self->is_borrowed)
        return;
    if (self->debug.is_leaving) {
        self->debug.is_leaving = false;
        if (self->debug.step == STEP_REPORT)
            stop(DEBUG_STEPPED, SIGTRAP); // the instruction is over
        else
            go_on();
        return;
    }
    enum debug_event event = self->debug.watch ? DEBUG_WATCHED : self->debug.postponed;
    if (event == self->debug.postponed)
        self->debug.postponed = DEBUG_NOTHING;
    if (event)
        stop(event, SIGTRAP);
    else
        answer_request();
}

void debug_breakpoint(void) {
    if (self->is_borrowed || !debug_attached)
        self->debug.step = STEP_SILENTLY;
    else
        stop(DEBUG_BREAKPOINT, SIGTRAP);
}

// A child that borrows its parent's memory runs on as it is; the parent's step is reported when it
// is back.
void debug_stepped(void) {
    bool is_reported = self->debug.step == STEP_REPORT && !self->is_borrowed;
    if (is_reported &&
        self->pc - self->debug.step_start < self->debug.step_end - self->debug.step_start)
        return; // gdb wants to hear of the end of the range
    self->debug.step = STEP_NONE;
    if (is_reported && debug_attached)
        stop(self->debug.watch ? DEBUG_WATCHED : DEBUG_STEPPED, SIGTRAP);
}

static void filter_signal(struct queued_signal *queued, bool is_synchronous) {
    bool is_blocked = self->sigmask & 1ull << (queued->number - 1);
    if (!resume_wants_signal(queued->number) ||
        (is_blocked && !is_synchronous && !self->temporary_mask))
        return;
    stop(DEBUG_SIGNAL, queued->number);
    if (self->debug.signal != queued->number)
        queued->info = (siginfo_t){.si_signo = self->debug.signal, .si_code = SI_USER};
    queued->number = self->debug.signal;
}

void debug_signal(void) {
    if (!debug_attached || self->is_borrowed)
        return;
    if (self->fault.number)
        filter_signal(&self->fault, true);
    if (self->queued.number && debug_attached)
        filter_signal(&self->queued, false);
}

bool debug_waits_at_errors(void) {
    return is_enabled && debug_error_limit != NEVER;
}

// The same where the thread may be in a system call, and not busy.
static void stop_anywhere(enum debug_event event) {
    bool is_busy = self->busy;
    stop(event, SIGTRAP);
    if (!is_busy)
        task_become_idle();
}

void debug_error(uint64_t shown) {
    if (!is_enabled || shown < debug_error_limit || self->is_borrowed)
        return;
    if (self->where == IN_ENGINE) {
        stop_anywhere(DEBUG_ERROR);
        return;
    }
    if (!task_try_stop_others()) {
        self->debug.postponed = DEBUG_ERROR;
        __atomic_or_fetch(&self->pending, PENDING_DEBUG, __ATOMIC_SEQ_CST);
        return;
    }
    serve(DEBUG_ERROR, SIGTRAP);
    self->debug.is_leaving = true;
    __atomic_or_fetch(&self->pending, PENDING_DEBUG, __ATOMIC_SEQ_CST);
}

void debug_ending(bool is_abnormal) {
    if (self->is_borrowed || !(is_abnormal ? stops_at_abnormal_exit : stops_at_exit))
        return;
    stop_anywhere(DEBUG_EXIT);
}

void debug_ended_by_exit(int status) {
    if (debug_attached && !self->is_borrowed)
        packets_report_end('W', status & 0xff);
}

void debug_ended_by_signal(int number) {
    if (debug_attached && !self->is_borrowed)
        packets_report_end('X', number);
}
