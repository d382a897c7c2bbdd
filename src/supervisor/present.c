#include "supervisor/present.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/signal_name.h"
#include "base/text.h"
#include "config.h"
#include "report/findings/text.h"
#include "report/findings/xml.h"
#include "supervisor/hooks.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/xml_out.h"
#include "wire/wire_supervisor.h"

// No stack lies below this address.
#define LOWEST_STACK 0x100000

// A word of the command as Valgrind prints it: the characters it sets a backslash before.
static void add_word(struct text *line, const char *word) {
    for (; *word; word++) {
        if (strchr(" \\<>", *word))
            text_char(line, '\\');
        text_char(line, *word);
    }
}

void present_command(struct text *line, const char *const *words) {
    for (size_t i = 0; words[i]; i++) {
        if (i)
            text_char(line, ' ');
        add_word(line, words[i]);
    }
}

void present_preamble(const struct supervisor_request *request, struct text lines[4],
                      const char *const *words, size_t count) {
    text_format(&lines[0], "%s, %s", request->tool->name, request->tool->help);
    text_string(&lines[1], "Copyright (C) 2026 the Quern authors, Apache License 2.0");
    text_string(&lines[2], "Using Quern-" QUERN_VERSION "; run quern -h for help");
    text_string(&lines[3], "Command:");
    for (size_t i = 0; i < count; i++) {
        text_char(&lines[3], ' ');
        add_word(&lines[3], words[i]);
    }
}

void present_banner(const struct supervisor_request *request, int pid, int parent,
                    const char *const *words, size_t count) {
    if (request->xml.wanted) {
        xml_greet(request, pid, parent, words, count);
        return;
    }
    struct log *log = request->job->log;
    if (!log_shows(log, 0))
        return;
    struct text banner = {0};
    struct text lines[4] = {{0}};
    present_preamble(request, lines, words, count);
    for (size_t i = 0; i < 4; i++) {
        text_format(&banner, "%s%s", i ? "\n" : "", lines[i].bytes);
        text_free(&lines[i]);
    }
    if (log_is_apart(log))
        text_format(&banner, "\nParent PID: %d", parent);
    log_print(log, pid, LOG_USER, banner.bytes);
    log_print(log, pid, LOG_USER, "");
    text_free(&banner);
}

void present_remarks(const struct supervisor_request *request, int pid) {
    struct log *log = request->job->log;
    for (size_t i = 0; log_shows(log, 1) && i < request->remark_count; i++)
        log_print(log, pid, LOG_DEBUGGING, request->remarks[i]);
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

static void add_stack_line(void *context, const char *line) {
    text_format(context, "\n%s", line);
}

// Where nothing is mapped, the stack may have met its end; near 0 a null pointer is the likelier.
static void add_stack_hint(struct text *out, const struct wire_fatal_signal *fatal) {
    if (fatal->signal == SIGSEGV && fatal->code == SEGV_MAPERR && fatal->address >= LOWEST_STACK)
        text_string(out, "\n If the stack may have overflowed: `ulimit -s` shows the main thread's "
                         "limit,\n and `ulimit -s unlimited` lifts it.");
}

static void write_xml_signal(struct tool_run *run, int pid, const struct wire_fatal_signal *fatal) {
    struct named_cache *cache = named_cache_new();
    struct stack stack = {.pid = pid, .addresses = fatal->pcs, .count = fatal->pc_count};
    struct named_stack named = named_stack_make(run->symbols, cache, &stack, &run->request->stacks);
    struct text text = {0};
    xml_signal(&text, &(struct xml_signal){.thread = hooks_thread_number(run, pid, fatal->tid),
                                           .signal = fatal->signal,
                                           .code = fatal->code,
                                           .name = signal_name(fatal->signal),
                                           .event = signal_cause(fatal->signal, fatal->code),
                                           .address = fatal->address,
                                           .stack = &named});
    xml_put(run->request, pid, &text);
    text_free(&text);
    named_stack_free(&named);
    named_cache_free(cache);
}

void present_fatal_signal(struct tool_run *run, int pid, const struct wire_fatal_signal *fatal) {
    if (run->request->xml.wanted) {
        write_xml_signal(run, pid, fatal);
        return;
    }
    // -q hides what somebody sent, not what the program did to itself.
    bool own_fault = dumps_core(fatal->signal) && fatal->code > 0;
    if (!log_shows(run->log, own_fault ? -1 : 0))
        return;
    struct text out = {0};
    const char *cause = signal_cause(fatal->signal, fatal->code);
    text_format(&out, "\nProcess terminating with default action of signal %d (%s)", fatal->signal,
                signal_name(fatal->signal));
    if (cause && fatal->code == SI_KERNEL)
        text_format(&out, "\n %s", cause);
    else if (cause)
        text_format(&out, "\n %s at address 0x%" PRIX64, cause, fatal->address);
    struct stack stack = {.pid = pid, .addresses = fatal->pcs, .count = fatal->pc_count};
    stack_text(run->symbols, &stack, &run->request->stacks, add_stack_line, &out);
    add_stack_hint(&out, fatal);
    log_print(run->log, pid, LOG_USER, out.bytes);
    text_free(&out);
}

void present_finding(struct tool_run *run, int pid, const struct wire_finding *message) {
    struct named_cache *cache = named_cache_new();
    struct naming naming = {run->symbols, cache, pid, &run->request->stacks};
    struct finding finding = wire_finding_parts(message);
    struct named_finding *named = named_finding_make(&naming, &finding);
    struct text text = {0};
    finding_text(named, &run->request->stacks, &text);
    log_print(run->log, pid, LOG_USER, text.bytes);
    log_print(run->log, pid, LOG_USER, "");
    text_free(&text);
    named_finding_drop(named);
    named_cache_free(cache);
}

static void write_xml_message(struct tool_run *run, int pid, const struct wire_print *print,
                              const char *message) {
    struct named_cache *cache = named_cache_new();
    struct stack stack = {.pid = pid, .addresses = print->pcs, .count = print->pc_count};
    struct named_stack named = named_stack_make(run->symbols, cache, &stack, &run->request->stacks);
    struct text text = {0};
    xml_message(&text, print->thread, print->thread_name, message, named.shown ? &named : NULL);
    xml_put(run->request, pid, &text);
    text_free(&text);
    named_stack_free(&named);
    named_cache_free(cache);
}

void present_print(struct tool_run *run, int pid, const struct wire_print *print) {
    const char *message = (const char *)(print->pcs + print->pc_count);
    if (run->request->xml.wanted) {
        write_xml_message(run, pid, print, message);
        return;
    }
    log_print(run->log, pid, LOG_PROGRAM, message);
    if (print->pc_count == 0)
        return;
    struct text out = {0};
    struct stack stack = {.pid = pid, .addresses = print->pcs, .count = print->pc_count};
    stack_text(run->symbols, &stack, &run->request->stacks, add_stack_line, &out);
    if (out.size)
        log_print(run->log, pid, LOG_USER, out.bytes + 1); // its first line break
    text_free(&out);
}

static void say_of_servers(void *context, const char *text) {
    const struct job *job = context;
    if (log_shows(job->log, 0))
        log_print(job->log, job->main_pid, LOG_USER, text);
}

// A line that does not stay.
static void show_progress(void *context, const char *text) {
    const struct job *job = context;
    if (!log_shows(job->log, 0) || !log_is_terminal(job->log))
        return;
    log_raw(job->log, job->main_pid, "\r\033[K");
    if (text)
        log_prompt(job->log, job->main_pid, text);
}

struct symbols *present_symbols(const struct supervisor_request *request) {
    struct symbols_options options = request->symbols;
    options.say = say_of_servers;
    options.live = true;
    options.progress = show_progress;
    options.note_context = request->job;
    return symbols_new(&options);
}

void present_file(const struct supervisor_request *request, int pid, const char *path) {
    bool is_scenario = request->scenario.port || request->scenario.log;
    struct log *log = request->job->log;
    if (log_shows(log, 0) && (log_is_terminal(log) || is_scenario))
        log_format(log, pid, LOG_USER,
                   "\nTo view the profile, run\n  quern print %s\nor, as a page,\n  quern view %s",
                   path, path);
}

void present_killed(struct log *log, int pid, int signal) {
    if (log_shows(log, 0))
        log_format(log, pid, LOG_USER, "\nProcess ended by signal %d (%s)", signal,
                   signal_name(signal));
}

void present_unfollowed(const struct supervisor_request *request, int pid) {
    for (size_t i = 0; i < request->option_count; i++)
        if (strcmp(request->options[i], "trace-children=yes") == 0)
            return;
    if (log_shows(request->job->log, 0))
        log_print(
            request->job->log, pid, LOG_USER,
            "\nMost of the CPU time was used by programs that this one has started. They were "
            "not\nfollowed (--trace-children=yes follows them)");
}

void present_away(struct log *log, int pid, const char *path, int reason) {
    static const char *const texts[] = {
        [WIRE_AWAY_NOT_ASKED] = "was not followed (--trace-children=yes follows it)",
        [WIRE_AWAY_IMPOSSIBLE] = "Quern cannot follow",
    };
    if (log_shows(log, 0) && (reason == WIRE_AWAY_NOT_ASKED || reason == WIRE_AWAY_IMPOSSIBLE))
        log_format(log, pid, LOG_USER, "\nThe program executed %s, which %s", path, texts[reason]);
}
