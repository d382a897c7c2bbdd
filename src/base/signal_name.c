#include "base/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

// The kernel's first real-time signal; SIGRTMIN of libc hides the two it uses itself.
#define FIRST_REAL_TIME 32

const char *signal_name(int signal) {
    static const char *const names[] = {
        [SIGHUP] = "SIGHUP",       [SIGINT] = "SIGINT",       [SIGQUIT] = "SIGQUIT",
        [SIGILL] = "SIGILL",       [SIGTRAP] = "SIGTRAP",     [SIGABRT] = "SIGABRT",
        [SIGBUS] = "SIGBUS",       [SIGFPE] = "SIGFPE",       [SIGKILL] = "SIGKILL",
        [SIGUSR1] = "SIGUSR1",     [SIGSEGV] = "SIGSEGV",     [SIGUSR2] = "SIGUSR2",
        [SIGPIPE] = "SIGPIPE",     [SIGALRM] = "SIGALRM",     [SIGTERM] = "SIGTERM",
        [SIGSTKFLT] = "SIGSTKFLT", [SIGCHLD] = "SIGCHLD",     [SIGCONT] = "SIGCONT",
        [SIGSTOP] = "SIGSTOP",     [SIGTSTP] = "SIGTSTP",     [SIGTTIN] = "SIGTTIN",
        [SIGTTOU] = "SIGTTOU",     [SIGURG] = "SIGURG",       [SIGXCPU] = "SIGXCPU",
        [SIGXFSZ] = "SIGXFSZ",     [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF",
        [SIGWINCH] = "SIGWINCH",   [SIGIO] = "SIGIO",         [SIGPWR] = "SIGPWR",
        [SIGSYS] = "SIGSYS",
    };
    static char buffer[32];
    if (signal > 0 && (size_t)signal < sizeof names / sizeof *names)
        return names[signal];
    if (signal >= FIRST_REAL_TIME && signal <= 64)
        snprintf(buffer, sizeof buffer, "SIGRT%d", signal - FIRST_REAL_TIME);
    else
        snprintf(buffer, sizeof buffer, "signal %d", signal);
    return buffer;
}

static const struct {
    int signal;
    int code;
    const char *text;
} causes[] = {
    {SIGSEGV, SEGV_MAPERR, "Access not within mapped region"},
    {SIGSEGV, SEGV_ACCERR, "Bad permissions for mapped region"},
    {SIGSEGV, SI_KERNEL, "General Protection Fault"},
    {SIGILL, ILL_ILLOPC, "Illegal opcode"},
    {SIGILL, ILL_ILLOPN, "Illegal operand"},
    {SIGILL, ILL_ILLADR, "Illegal addressing mode"},
    {SIGILL, ILL_ILLTRP, "Illegal trap"},
    {SIGILL, ILL_PRVOPC, "Privileged opcode"},
    {SIGILL, ILL_PRVREG, "Privileged register"},
    {SIGILL, ILL_COPROC, "Coprocessor error"},
    {SIGILL, ILL_BADSTK, "Internal stack error"},
    {SIGFPE, FPE_INTDIV, "Integer divide by zero"},
    {SIGFPE, FPE_INTOVF, "Integer overflow"},
    {SIGFPE, FPE_FLTDIV, "FP divide by zero"},
    {SIGFPE, FPE_FLTOVF, "FP overflow"},
    {SIGFPE, FPE_FLTUND, "FP underflow"},
    {SIGFPE, FPE_FLTRES, "FP inexact"},
    {SIGFPE, FPE_FLTINV, "FP invalid operation"},
    {SIGFPE, FPE_FLTSUB, "FP subscript out of range"},
    {SIGBUS, BUS_ADRALN, "Invalid address alignment"},
    {SIGBUS, BUS_ADRERR, "Non-existent physical address"},
    {SIGBUS, BUS_OBJERR, "Hardware error"},
};

const char *signal_cause(int signal, int code) {
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].signal == signal && causes[i].code == code)
            return causes[i].text;
    return NULL;
}
