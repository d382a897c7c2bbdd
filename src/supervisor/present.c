#include "supervisor/present.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/signal_name.h"
#include "base/text.h"
#include "config.h"
#include "supervisor/log.h"

// A word of the command as Valgrind prints it: the characters it sets a backslash before.
static void add_word(struct text *line, const char *word) {
    for (; *word; word++) {
        if (strchr(" \\<>", *word))
            text_char(line, '\\');
        text_char(line, *word);
    }
}

void present_banner(const struct supervisor_request *request, int pid, int parent,
                    const char *const *words, size_t count) {
    if (!log_shows(0))
        return;
    struct text banner = {0};
    text_format(&banner, "%s, %s\n", request->tool, request->tool_help);
    text_string(&banner, "Copyright (C) 2026 the Quern authors, Apache License 2.0\n");
    text_string(&banner, "Using Quern-" QUERN_VERSION "; run quern -h for help\n");
    text_string(&banner, "Command:");
    for (size_t i = 0; i < count; i++) {
        text_char(&banner, ' ');
        add_word(&banner, words[i]);
    }
    if (log_is_apart())
        text_format(&banner, "\nParent PID: %d", parent);
    log_print(pid, LOG_USER, banner.bytes);
    log_print(pid, LOG_USER, "");
    text_free(&banner);
}

void present_remarks(const struct supervisor_request *request, int pid) {
    for (size_t i = 0; log_shows(1) && i < request->remark_count; i++)
        log_print(pid, LOG_DEBUGGING, request->remarks[i]);
}

static bool dumps_core(int signal) {
    switch (signal) {
    case SIGQUIT:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGXCPU:
    case SIGXFSZ:
    case SIGSYS:
        return true;
    default:
        return false;
    }
}

static void add_stack(struct text *out, const struct process *process,
                      const struct wire_fatal_signal *fatal) {
    for (uint32_t i = 0; i < fatal->pc_count; i++)
        text_format(out, "\n   %s 0x%" PRIX64 ": ???", i ? "by" : "at", fatal->pcs[i]);
}

void present_fatal_signal(const struct process *process, const struct wire_fatal_signal *fatal) {
    // -q hides what somebody sent, not what the program did to itself.
    bool own_fault = dumps_core(fatal->signal) && fatal->code > 0;
    if (!log_shows(own_fault ? -1 : 0))
        return;
    struct text out = {0};
    const char *cause = signal_cause(fatal->signal, fatal->code);
    text_format(&out, "\nProcess terminating with default action of signal %d (%s)", fatal->signal,
                signal_name(fatal->signal));
    if (cause && fatal->code == SI_KERNEL)
        text_format(&out, "\n %s", cause);
    else if (cause)
        text_format(&out, "\n %s at address 0x%" PRIX64, cause, fatal->address);
    add_stack(&out, process, fatal);
    log_print(process->pid, LOG_USER, out.bytes);
    text_free(&out);
}

void present_killed(int pid, int signal) {
    if (log_shows(0))
        log_format(pid, LOG_USER, "\nProcess ended by signal %d (%s)", signal, signal_name(signal));
}
