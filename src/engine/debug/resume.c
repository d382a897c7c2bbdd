// Packets that let the target go on: which threads, by how much, and with which signals.
#include <signal.h>

#include "engine/debug/packets.h"
#include "engine/debug/stop.h"
#include "engine/task.h"

static uint64_t passed[2]; // signals, by gdb's numbers, that gdb does not want to hear of

void resume_begin(void) {
    passed[0] = passed[1] = 0;
}

// ---- signals -----------------------------------------------------------------------------------

// gdb's own numbers.
static const uint8_t gdb_numbers[32] = {
    [SIGHUP] = 1,   [SIGINT] = 2,    [SIGQUIT] = 3,  [SIGILL] = 4,   [SIGTRAP] = 5,
    [SIGABRT] = 6,  [SIGFPE] = 8,    [SIGKILL] = 9,  [SIGBUS] = 10,  [SIGSEGV] = 11,
    [SIGSYS] = 12,  [SIGPIPE] = 13,  [SIGALRM] = 14, [SIGTERM] = 15, [SIGURG] = 16,
    [SIGSTOP] = 17, [SIGTSTP] = 18,  [SIGCONT] = 19, [SIGCHLD] = 20, [SIGTTIN] = 21,
    [SIGTTOU] = 22, [SIGIO] = 23,    [SIGXCPU] = 24, [SIGXFSZ] = 25, [SIGVTALRM] = 26,
    [SIGPROF] = 27, [SIGWINCH] = 28, [SIGUSR1] = 30, [SIGUSR2] = 31, [SIGPWR] = 32,
};
enum { GDB_UNKNOWN = 143, GDB_REALTIME_33 = 45, GDB_REALTIME_32 = 77, GDB_REALTIME_64 = 78 };

int resume_signal_to_gdb(int number) {
    if (number == 32 || number == 64)
        return number == 32 ? GDB_REALTIME_32 : GDB_REALTIME_64;
    if (number > 32 && number < 64)
        return number - 33 + GDB_REALTIME_33;
    return number > 0 && number < 32 && gdb_numbers[number] ? gdb_numbers[number] : GDB_UNKNOWN;
}

static int signal_from_gdb(int number) {
    for (int i = 1; i <= 64; i++)
        if (resume_signal_to_gdb(i) == number)
            return i;
    return 0;
}

bool resume_wants_signal(int number) {
    int theirs = resume_signal_to_gdb(number);
    return theirs >= 128 || !(passed[theirs / 64] & 1ull << theirs % 64);
}

void resume_pass_signals(const char *list) {
    uint64_t number;
    passed[0] = passed[1] = 0;
    while (remote_number(&list, &number)) {
        if (number < 128)
            passed[number / 64] |= 1ull << number % 64;
        if (*list == ';')
            list++;
    }
    packets_reply_done(true);
}

// ---- threads -----------------------------------------------------------------------------------

static void forget_steps(void) {
    task_lock_list();
    for (struct task *task = (struct task *)task_first(); task; task = task->next) {
        task->debug.step = STEP_NONE;
        task->debug.signal = 0;
        task->debug.step_start = task->debug.step_end = 0;
    }
    task_unlock_list();
}

// One action: c, C and a signal, s, S and a signal, or r and a range.
static const char *read_action(const char *text, char *kind, int *signal, uint64_t range[2]) {
    uint64_t number;
    *kind = *text++;
    *signal = 0;
    range[0] = range[1] = 0;
    if ((*kind == 'C' || *kind == 'S') && remote_number(&text, &number))
        *signal = signal_from_gdb((int)number);
    if (*kind == 'r' && remote_number(&text, &range[0]) && *text++ == ',')
        remote_number(&text, &range[1]);
    return text;
}

static void set_action(struct task *task, char kind, int signal, const uint64_t range[2]) {
    if (kind == 's' || kind == 'S' || kind == 'r')
        task->debug.step = STEP_REPORT;
    task->debug.step_start = range[0];
    task->debug.step_end = range[1];
    task->debug.signal = signal;
}

// vCont;s:1a2;c  The first action that names a thread, or none, holds for it. Without an action for
// all, the others stand still.
bool resume_read_actions(const char *text, struct debug_resume *resume) {
    forget_steps();
    bool is_for_all = false;
    struct task *first = NULL;
    while (*text == ';') {
        char kind;
        int signal, tid = -1;
        uint64_t range[2];
        text = read_action(text + 1, &kind, &signal, range);
        if (*text == ':') {
            text++;
            if (!threads_read_id(&text, &tid))
                return false;
        }
        struct task *task = tid > 0 ? threads_find(tid) : NULL;
        if (!task) {
            is_for_all = true;
            task = first ? NULL : self;
        } else if (!first) {
            first = task;
        }
        if (task)
            set_action(task, kind, signal, range);
    }
    resume->only = is_for_all ? NULL : first;
    return is_for_all || first;
}

// c, C, s and S without vCont.
void resume_read_plain_action(const char *text, struct debug_resume *resume) {
    char kind;
    int signal;
    uint64_t range[2];
    forget_steps();
    read_action(text, &kind, &signal, range);
    struct task *task = threads_continued();
    set_action(task ? task : self, kind, signal, range);
    resume->only = task;
}
