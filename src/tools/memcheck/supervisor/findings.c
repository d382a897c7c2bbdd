#include "tools/memcheck/supervisor/findings.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vector.h"
#include "tools/memcheck/supervisor/parts.h"

struct findings *findings_new(const struct tool_run *run,
                              const struct findings_settings *settings) {
    struct findings *findings = base_allocate(sizeof *findings);
    *findings = (struct findings){.request = run->request,
                                  .settings = settings,
                                  .symbols = run->symbols,
                                  .log = run->log,
                                  .followed = run->processes,
                                  .ask = settings->generate == GENERATE_ASK,
                                  .main_pid = run->main_pid};
    return findings;
}

struct process_findings *findings_of_process(const struct findings *run, int pid) {
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i]->pid == pid)
            return run->processes[i];
    return NULL;
}

static struct process_findings *find_or_add(struct findings *run, int pid) {
    struct process_findings *process = findings_of_process(run, pid);
    if (process)
        return process;
    process = base_allocate(sizeof *process);
    *process = (struct process_findings){
        .run = run, .pid = pid, .ledger = -1, .last_thread = 1, .cache = named_cache_new()};
    *vector_push(run->processes, run->process_count) = process;
    return process;
}

static void forget(struct process_findings *process) {
    struct findings *run = process->run;
    for (size_t i = 0; i < run->process_count; i++) {
        if (run->processes[i] == process) {
            run->processes[i] = run->processes[--run->process_count];
            break;
        }
    }
    for (size_t i = 0; i < process->context_count; i++)
        named_finding_drop(process->contexts[i].finding);
    leaks_drop(process);
    if (process->ledger >= 0)
        close(process->ledger);
    named_cache_free(process->cache);
    free(process->contexts);
    free(process->hidden);
    free(process->threads);
    free(process);
}

void findings_free(struct findings *run) {
    while (run && run->process_count)
        forget(run->processes[0]);
    if (run)
        free(run->processes);
    free(run);
}

struct naming findings_naming(struct process_findings *process) {
    return (struct naming){process->run->symbols, process->cache, process->pid,
                           &process->run->request->stacks};
}

// A program may hand its ledger over before it says hello.
void findings_begin(struct findings *run, int pid) {
    struct process_findings *process = findings_of_process(run, pid);
    if (!process)
        return;
    int ledger = process->ledger_is_new ? process->ledger : -1;
    if (process->ledger_is_new)
        process->ledger = -1;
    forget(process);
    if (ledger >= 0)
        find_or_add(run, pid)->ledger = ledger;
}

void findings_mapped(struct findings *run, int pid) {
    struct process_findings *process = findings_of_process(run, pid);
    if (process)
        named_cache_clear(process->cache);
}

void findings_fork(struct findings *run, int parent, int child) {
    const struct process_findings *from = findings_of_process(run, parent);
    if (!from || findings_of_process(run, child))
        return;
    struct process_findings *to = find_or_add(run, child);
    to->closed = from->closed;
    to->told_detail = from->told_detail;
    to->has_values = from->has_values;
    to->last_thread = from->last_thread;
    to->next_unique = from->next_unique;
    to->shown_count = from->shown_count;
    to->last_sums = from->last_sums;
    for (size_t i = 0; i < from->context_count; i++) {
        *vector_push(to->contexts, to->context_count) = from->contexts[i];
        named_finding_share(from->contexts[i].finding);
    }
}

static void note_thread(struct process_findings *process, int tid, int number) {
    for (size_t i = 0; i < process->thread_count; i++) {
        if (process->threads[i].tid == tid) {
            process->threads[i].number = number;
            return;
        }
    }
    *vector_push(process->threads, process->thread_count) = (struct thread_number){tid, number};
}

int findings_thread(const struct findings *run, int pid, int tid) {
    const struct process_findings *process = findings_of_process(run, pid);
    for (size_t i = 0; process && i < process->thread_count; i++)
        if (process->threads[i].tid == tid)
            return process->threads[i].number;
    return 1;
}

// ---- showing -----------------------------------------------------------------------------------

void findings_say(struct process_findings *process, const char *text) {
    if (!process->muted)
        log_print(process->run->log, process->pid, LOG_USER, text);
}

// The answer to whether a suppression is to be printed: 'y', 'n', or 'c' for never again.
static char ask(const struct process_findings *process) {
    const struct followed *followed = followed_find(process->run->followed, process->pid);
    char reply = 'n';
    log_print(process->run->log, process->pid, LOG_USER, "");
    log_prompt(process->run->log, process->pid,
               "---- Print suppression ? --- [Return/N/n/Y/y/C/c] ---- ");
    for (char c = ' '; c != '\n';) {
        // Nobody waits for the answer when the process is gone.
        struct pollfd wait[2] = {{.fd = settings_of(process)->input_fd, .events = POLLIN},
                                 {.fd = followed ? followed->pidfd : -1, .events = POLLIN}};
        if (poll(wait, 2, -1) < 0 || !(wait[0].revents) ||
            read(settings_of(process)->input_fd, &c, 1) != 1)
            return 'c';
        if (strchr("yY", c))
            reply = 'y';
        else if (strchr("cC", c))
            reply = 'c';
    }
    return reply;
}

static bool wants_suppression(const struct process_findings *process) {
    if (settings_of(process)->generate == GENERATE_ALL)
        return true;
    if (!process->run->ask)
        return false;
    char reply = ask(process);
    process->run->ask = reply != 'c';
    return reply == 'y';
}

void findings_show(struct process_findings *process, int thread, const char *thread_name,
                   const char *text, const char *suppression) {
    const struct findings_settings *settings = settings_of(process);
    struct text out = {0};
    if (process->muted)
        return;
    if (settings->marker_begin)
        text_format(&out, "%s\n", settings->marker_begin);
    if (thread != process->last_thread)
        text_format(&out, "Thread %d%s%s:\n", thread, *thread_name ? " " : "", thread_name);
    process->last_thread = thread;
    text_string(&out, text);
    log_print(process->run->log, process->pid, LOG_USER, out.bytes);
    log_print(process->run->log, process->pid, LOG_USER, "");
    if (settings->marker_end)
        log_print(process->run->log, process->pid, LOG_USER, settings->marker_end);
    text_free(&out);
    if (suppression && wants_suppression(process))
        log_raw(process->run->log, process->pid, suppression);
}

static void show_finding(struct process_findings *process, const struct named_finding *finding) {
    struct text text = {0};
    struct text raw = {0};
    const struct stack_text_options *stacks = &process->run->request->stacks;
    if (process->run->request->xml.wanted) {
        xml_finding(&text, finding, process->next_unique, stacks,
                    settings_of(process)->generate == GENERATE_ALL);
        if (!process->muted)
            xml_put(process->run->request, process->pid, &text);
    } else {
        finding_text(finding, stacks, &text);
        finding_suppression(finding, &raw);
        findings_show(process, finding->facts.thread, finding->facts.thread_name, text.bytes,
                      raw.bytes);
    }
    text_free(&text);
    text_free(&raw);
}

// ---- limits ------------------------------------------------------------------------------------

static void say_limit(struct process_findings *process, const char *what) {
    struct text text = {0};
    text_format(&text,
                "\nMore than %s errors detected.  I'm not reporting any more.\n"
                "The counts at the end are of what was seen up to here only.\n"
                "--error-limit=no lifts this limit.",
                what);
    findings_say(process, text.bytes);
    findings_say(process, "");
    text_free(&text);
    process->closed = true;
    ledger_answer_closed(process);
}

// Whether there is room for one more context.
static bool within_limits(struct process_findings *process) {
    if (process->closed)
        return false;
    if (process->run->request->xml.wanted || !settings_of(process)->limit)
        return true;
    if (process->shown_count >= SHOWN_AT_MOST) {
        say_limit(process, "1000 different");
        return false;
    }
    if (process->shown_count >= SHOWN_IN_DETAIL && !process->told_detail) {
        process->told_detail = true;
        findings_say(process, "\nMore than 100 errors detected.  Subsequent errors\n"
                              "will still be recorded, but in less detail than before.");
    }
    return true;
}

// ---- messages ----------------------------------------------------------------------------------

void findings_stop(struct process_findings *process) {
    process->stopped = true;
    if (process->run->request->xml.wanted) {
        struct text end = {0};
        text_string(&end, "</valgrindoutput>\n");
        xml_put(process->run->request, process->pid, &end);
        text_free(&end);
    }
    findings_say(process, "\nExit program on first error (--exit-on-first-error=yes)");
}

static bool is_about_values(const struct finding_facts *facts) {
    return facts->kind == FINDING_CONDITION || facts->kind == FINDING_VALUE ||
           (facts->kind == FINDING_PARAMETER && facts->fault != FAULT_UNADDRESSABLE) ||
           (facts->kind == FINDING_CLIENT && facts->fault == FAULT_UNDEFINED);
}

static void show_place(struct process_findings *process, const struct wire_finding *message) {
    struct naming naming = findings_naming(process);
    struct finding finding = wire_finding_parts(message);
    struct named_finding *named = named_finding_make(&naming, &finding);
    struct text text = {0};
    finding_place_text(named, &process->run->request->stacks, &text);
    findings_say(process, text.bytes);
    text_free(&text);
    named_finding_drop(named);
}

static void take_finding(struct process_findings *process, const struct wire_message *message) {
    const struct finding_facts *facts = &message->finding->facts;
    uint32_t number = message->finding->context;
    if (facts->kind == FINDING_LIMIT) {
        if (!process->closed)
            say_limit(process, "10000000 total");
        return;
    }
    if (facts->kind == FINDING_PLACE) {
        show_place(process, message->finding);
        return;
    }
    note_thread(process, message->tid, facts->thread);
    if (!within_limits(process) || process->stopped) {
        ledger_answer_verdict(process, number, VERDICT_SUPPRESSED); // the process may wait for it
        return;
    }
    struct naming naming = findings_naming(process);
    struct finding finding = wire_finding_parts(message->finding);
    struct context context = {.number = number,
                              .unique = process->next_unique,
                              .finding = named_finding_make(&naming, &finding),
                              .count = 1};
    context.suppressed_by =
        finding_suppressed_by(context.finding, settings_of(process)->suppressions);
    uint8_t verdict = VERDICT_SUPPRESSED;
    if (!context.suppressed_by) {
        process->has_values |= is_about_values(facts);
        show_finding(process, context.finding);
        process->shown_count++;
        if (outputs_results(process->run->request) && !process->muted)
            context.result =
                results_add_finding(outputs_results(process->run->request), context.finding,
                                    &process->run->request->stacks, process->pid);
        verdict = settings_of(process)->exit_on_first ? VERDICT_STOP : VERDICT_SHOWN;
        if (verdict == VERDICT_STOP)
            findings_stop(process);
    }
    *vector_push(process->contexts, process->context_count) = context;
    process->next_unique++;
    ledger_answer_verdict(process, number, verdict);
}

static void take_ledger(struct process_findings *process, int fd) {
    if (process->ledger >= 0)
        close(process->ledger);
    process->ledger = fd_move_high(fd);
    process->ledger_is_new = true;
}

// A search that is complete is taken into account at once; one at the end is shown with the
// summary.
static void search_progress(struct process_findings *process) {
    struct search *search = &process->search;
    if (!search->active || search->count < search->facts.losses)
        return;
    search->active = false;
    search->done = true;
    if (!search->facts.at_end) {
        leaks_show(process);
        if (process->stopped)
            ledger_answer_end(process, true);
    }
    ledger_answer_search(process);
}

static void take_end(struct process_findings *process, const struct wire_findings_end *end) {
    process->ended = true;
    process->heap = end->heap;
    summary_count(process);
    ledger_answer_end(process, summary_failures(process) > 0 || leaks_stop(process));
}

bool findings_take(struct findings *run, const struct followed *followed,
                   const struct wire_message *message) {
    if (message->type < WIRE_LEDGER || message->type > WIRE_FINDINGS_END)
        return false;
    struct process_findings *process = find_or_add(run, message->pid);
    process->muted = followed->muted;
    switch (message->type) {
    case WIRE_LEDGER:
        take_ledger(process, message->fd);
        break;
    case WIRE_FINDING:
        take_finding(process, message);
        break;
    case WIRE_LEAKS:
        leaks_begin(process, message->leaks);
        search_progress(process);
        break;
    case WIRE_LOSSES:
        if (process->search.active)
            leaks_add(process, message->losses, message->size);
        search_progress(process);
        break;
    case WIRE_FINDINGS_END:
        take_end(process, message->findings_end);
        break;
    default:
        break;
    }
    return true;
}

void findings_finish(struct findings *run, const struct followed *followed) {
    struct process_findings *process = findings_of_process(run, followed->pid);
    if (!process)
        return;
    process->muted = followed->muted;
    // A process that became another program is not summed up: it has not ended as this one. Nor is
    // one that borrowed its parent's memory, and its ledger, until it became one.
    bool counts = !followed->away && process->ledger >= 0;
    if (counts && !process->stopped) {
        summary_count(process);
        summary_show(process);
    }
    if (process->pid == run->main_pid)
        run->main_failed = counts && (process->stopped || summary_failures(process) > 0);
    for (size_t i = 0; i < process->context_count; i++) {
        struct context *context = &process->contexts[i];
        if (context->result && context->result->pid == process->pid)
            context->result->count = context->count;
    }
    xml_drop(process->run->request, process->pid);
    forget(process);
}

bool findings_main_failed(const struct findings *run) {
    return run->main_failed;
}
