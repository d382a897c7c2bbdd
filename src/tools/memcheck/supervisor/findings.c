#include "tools/memcheck/supervisor/findings.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "report/findings/text.h"
#include "report/findings/xml.h"
#include "tools/memcheck/supervisor/parts.h"

struct findings findings;

static struct errors **table;
static size_t table_count;

void findings_prepare(const struct supervisor_request *request, struct symbols *symbols,
                      int main_pid, const struct findings_settings *settings) {
    findings.request = request;
    findings.settings = settings;
    findings.symbols = symbols;
    findings.main_pid = main_pid;
    findings.ask = settings->generate == GENERATE_ASK;
}

static struct errors *find(int pid) {
    for (size_t i = 0; i < table_count; i++)
        if (table[i]->pid == pid)
            return table[i];
    return NULL;
}

static struct errors *known(int pid) {
    struct errors *errors = find(pid);
    if (errors)
        return errors;
    errors = base_allocate(sizeof *errors);
    errors->pid = pid;
    errors->ledger = -1;
    errors->last_thread = 1;
    errors->cache = named_cache_new();
    table = base_reallocate(table, (table_count + 1) * sizeof *table);
    table[table_count++] = errors;
    return errors;
}

static void forget(struct errors *errors) {
    for (size_t i = 0; i < table_count; i++) {
        if (table[i] == errors) {
            table[i] = table[--table_count];
            break;
        }
    }
    for (size_t i = 0; i < errors->context_count; i++)
        finding_drop(errors->contexts[i].finding);
    leaks_drop(errors);
    if (errors->ledger >= 0)
        close(errors->ledger);
    named_cache_free(errors->cache);
    free(errors->contexts);
    free(errors->hidden);
    free(errors->threads);
    free(errors);
    if (!table_count) {
        free(table);
        table = NULL;
    }
}

struct naming findings_naming(struct errors *errors) {
    return (struct naming){findings.symbols, errors->cache, errors->pid, &findings.request->stacks};
}

// A program may hand its ledger over before it says hello.
void findings_begin(int pid) {
    struct errors *errors = find(pid);
    if (!errors)
        return;
    int ledger = errors->ledger_is_new ? errors->ledger : -1;
    if (errors->ledger_is_new)
        errors->ledger = -1;
    forget(errors);
    if (ledger >= 0)
        known(pid)->ledger = ledger;
}

void findings_mapped(int pid) {
    struct errors *errors = find(pid);
    if (errors)
        named_cache_clear(errors->cache);
}

void findings_fork(int parent, int child) {
    const struct errors *from = find(parent);
    if (!from || find(child))
        return;
    struct errors *to = known(child);
    to->closed = from->closed;
    to->told_detail = from->told_detail;
    to->has_values = from->has_values;
    to->last_thread = from->last_thread;
    to->next_unique = from->next_unique;
    to->shown_count = from->shown_count;
    to->last_sums = from->last_sums;
    to->contexts = base_allocate(from->context_count * sizeof *to->contexts);
    for (size_t i = 0; i < from->context_count; i++) {
        to->contexts[i] = from->contexts[i];
        finding_share(to->contexts[i].finding);
    }
    to->context_count = from->context_count;
}

static void note_thread(struct errors *errors, int tid, int number) {
    for (size_t i = 0; i < errors->thread_count; i++) {
        if (errors->threads[i].tid == tid) {
            errors->threads[i].number = number;
            return;
        }
    }
    errors->threads =
        base_reallocate(errors->threads, (errors->thread_count + 1) * sizeof *errors->threads);
    errors->threads[errors->thread_count++] = (struct thread_number){tid, number};
}

int findings_thread(int pid, int tid) {
    const struct errors *errors = find(pid);
    for (size_t i = 0; errors && i < errors->thread_count; i++)
        if (errors->threads[i].tid == tid)
            return errors->threads[i].number;
    return 1;
}

// ---- answers -----------------------------------------------------------------------------------

// The file is the process's: a write that fails hurts nobody but itself.
static void answer(const struct errors *errors, size_t offset, const void *value, size_t size) {
    if (errors->ledger >= 0 &&
        pwrite(errors->ledger, value, size, (off_t)(offsetof(struct ledger, answers) + offset)) < 0)
        return;
}

#define ANSWER(errors, field, value)                                                               \
    answer(errors, offsetof(struct ledger_answers, field), value, sizeof *(value))

static void answer_verdict(const struct errors *errors, uint32_t context, uint8_t verdict) {
    uint32_t shown = (uint32_t)errors->shown_count;
    ANSWER(errors, shown, &shown);
    answer(errors, offsetof(struct ledger_answers, verdicts) + context, &verdict, 1);
}

static void close_down(struct errors *errors) {
    uint32_t closed = 1;
    errors->closed = true;
    ANSWER(errors, closed, &closed);
}

// ---- showing -----------------------------------------------------------------------------------

void findings_say(struct errors *errors, const char *text) {
    if (!errors->muted)
        log_print(errors->pid, LOG_USER, text);
}

// The answer to whether a suppression is to be printed: 'y', 'n', or 'c' for never again.
static char ask(const struct errors *errors) {
    const struct followed *process = followed_find(errors->pid);
    char reply = 'n';
    log_print(errors->pid, LOG_USER, "");
    log_prompt(errors->pid, "---- Print suppression ? --- [Return/N/n/Y/y/C/c] ---- ");
    for (char c = ' '; c != '\n';) {
        // Nobody waits for the answer when the process is gone.
        struct pollfd wait[2] = {{.fd = FINDINGS_SETTINGS->input_fd, .events = POLLIN},
                                 {.fd = process ? process->pidfd : -1, .events = POLLIN}};
        if (poll(wait, 2, -1) < 0 || !(wait[0].revents) ||
            read(FINDINGS_SETTINGS->input_fd, &c, 1) != 1)
            return 'c';
        if (strchr("yY", c))
            reply = 'y';
        else if (strchr("cC", c))
            reply = 'c';
    }
    return reply;
}

static bool wants_suppression(const struct errors *errors) {
    if (FINDINGS_SETTINGS->generate == GENERATE_ALL)
        return true;
    if (!findings.ask)
        return false;
    char reply = ask(errors);
    findings.ask = reply != 'c';
    return reply == 'y';
}

static void show_text(struct errors *errors, int thread, const char *thread_name,
                      const char *text) {
    struct text out = {0};
    const struct findings_settings *settings = FINDINGS_SETTINGS;
    if (settings->marker_begin)
        text_format(&out, "%s\n", settings->marker_begin);
    if (thread != errors->last_thread)
        text_format(&out, "Thread %d%s%s:\n", thread, *thread_name ? " " : "", thread_name);
    errors->last_thread = thread;
    text_string(&out, text);
    log_print(errors->pid, LOG_USER, out.bytes);
    log_print(errors->pid, LOG_USER, "");
    if (settings->marker_end)
        log_print(errors->pid, LOG_USER, settings->marker_end);
    text_free(&out);
}

void findings_show(struct errors *errors, int thread, const char *thread_name, const char *text,
                   const char *raw) {
    if (errors->muted)
        return;
    show_text(errors, thread, thread_name, text);
    if (raw && wants_suppression(errors))
        log_raw(errors->pid, raw);
}

static void show_finding(struct errors *errors, const struct finding *finding) {
    struct text text = {0};
    struct text raw = {0};
    const struct stack_text_options *stacks = &findings.request->stacks;
    if (findings.request->xml.wanted) {
        xml_finding(&text, finding, errors->next_unique, stacks,
                    FINDINGS_SETTINGS->generate == GENERATE_ALL);
        if (!errors->muted)
            xml_put(errors->pid, &text);
    } else {
        finding_text(finding, stacks, &text);
        finding_suppression(finding, &raw);
        findings_show(errors, finding->facts->thread, finding->facts->thread_name, text.bytes,
                      raw.bytes);
    }
    text_free(&text);
    text_free(&raw);
}

// ---- limits ------------------------------------------------------------------------------------

static void say_limit(struct errors *errors, const char *what) {
    struct text text = {0};
    text_format(&text,
                "\nMore than %s errors detected.  I'm not reporting any more.\n"
                "The counts at the end are of what was seen up to here only.\n"
                "--error-limit=no lifts this limit.",
                what);
    findings_say(errors, text.bytes);
    findings_say(errors, "");
    text_free(&text);
    close_down(errors);
}

// Whether there is room for one more context.
static bool within_limits(struct errors *errors) {
    if (errors->closed)
        return false;
    if (findings.request->xml.wanted || !FINDINGS_SETTINGS->limit)
        return true;
    if (errors->shown_count >= SHOWN_AT_MOST) {
        say_limit(errors, "1000 different");
        return false;
    }
    if (errors->shown_count >= SHOWN_IN_DETAIL && !errors->told_detail) {
        errors->told_detail = true;
        findings_say(errors, "\nMore than 100 errors detected.  Subsequent errors\n"
                             "will still be recorded, but in less detail than before.");
    }
    return true;
}

// ---- messages ----------------------------------------------------------------------------------

static struct suppression *suppressed_by(const struct finding *finding) {
    struct text kind = {0};
    struct text parameter = {0};
    finding_suppression_kind(finding, &kind);
    bool has_parameter = finding_parameter(finding, &parameter);
    struct suppression_subject subject = {.kind = kind.bytes,
                                          .parameter = has_parameter ? parameter.bytes : NULL,
                                          .stack = &finding->stacks[STACK_OF_FINDING]};
    struct suppression *by = suppressions_match(FINDINGS_SETTINGS->suppressions, &subject);
    text_free(&kind);
    text_free(&parameter);
    return by;
}

static void stop_process(struct errors *errors) {
    errors->stopped = true;
    if (findings.request->xml.wanted) {
        struct text end = {0};
        text_string(&end, "</valgrindoutput>\n");
        xml_put(errors->pid, &end);
        text_free(&end);
    }
    findings_say(errors, "\nExit program on first error (--exit-on-first-error=yes)");
}

static bool is_about_values(const struct wire_finding *facts) {
    return facts->kind == FINDING_CONDITION || facts->kind == FINDING_VALUE ||
           (facts->kind == FINDING_PARAMETER && facts->fault != FAULT_UNADDRESSABLE) ||
           (facts->kind == FINDING_CLIENT && facts->fault == FAULT_UNDEFINED);
}

static void take_finding(struct errors *errors, const struct wire_message *message) {
    const struct wire_finding *facts = message->finding;
    if (facts->kind == FINDING_LIMIT) {
        if (!errors->closed)
            say_limit(errors, "10000000 total");
        return;
    }
    note_thread(errors, message->tid, facts->thread);
    if (!within_limits(errors) || errors->stopped) {
        answer_verdict(errors, facts->context, VERDICT_SUPPRESSED); // the process may wait for it
        return;
    }
    struct naming naming = findings_naming(errors);
    struct context context = {.number = facts->context,
                              .unique = errors->next_unique,
                              .finding = finding_make(&naming, facts, message->size),
                              .count = 1};
    context.suppressed_by = suppressed_by(context.finding);
    errors->contexts =
        base_reallocate(errors->contexts, (errors->context_count + 1) * sizeof *errors->contexts);
    uint8_t verdict = VERDICT_SUPPRESSED;
    if (!context.suppressed_by) {
        errors->has_values |= is_about_values(facts);
        show_finding(errors, context.finding);
        errors->shown_count++;
        if (outputs_results() && !errors->muted)
            context.result = results_add_finding(outputs_results(), context.finding,
                                                 &findings.request->stacks, errors->pid);
        verdict = FINDINGS_SETTINGS->exit_on_first ? VERDICT_STOP : VERDICT_SHOWN;
        if (verdict == VERDICT_STOP)
            stop_process(errors);
    }
    errors->contexts[errors->context_count++] = context;
    errors->next_unique++;
    answer_verdict(errors, facts->context, verdict);
}

static void take_ledger(struct errors *errors, int fd) {
    if (errors->ledger >= 0)
        close(errors->ledger);
    errors->ledger = fd_move_high(fd);
    errors->ledger_is_new = true;
}

static void answer_search(struct errors *errors) {
    uint32_t searches = 0;
    size_t offset = offsetof(struct ledger, answers) + offsetof(struct ledger_answers, searches);
    if (errors->ledger < 0 ||
        pread(errors->ledger, &searches, sizeof searches, (off_t)offset) != sizeof searches)
        return;
    ANSWER(errors, leaked_bytes, &errors->last_sums.bytes);
    ANSWER(errors, leaked_blocks, &errors->last_sums.blocks);
    searches++;
    ANSWER(errors, searches, &searches);
}

static void take_losses(struct errors *errors, const struct wire_message *message) {
    if (!errors->search.active)
        return;
    leaks_add(errors, message->losses, message->size);
}

// A search that is complete is taken into account at once; one at the end is shown with the
// summary.
static void search_progress(struct errors *errors) {
    struct search *search = &errors->search;
    if (!search->active || search->count < search->facts.losses)
        return;
    search->active = false;
    search->done = true;
    if (!search->facts.at_end)
        leaks_show(errors);
    answer_search(errors);
}

static void take_end(struct errors *errors, const struct wire_findings_end *end) {
    errors->ended = true;
    errors->heap = end->heap;
    summary_count(errors);
    uint32_t verdict = summary_failures(errors) ? 2 : 1;
    ANSWER(errors, end, &verdict);
}

bool findings_take(const struct followed *process, const struct wire_message *message) {
    if (message->type < WIRE_LEDGER || message->type > WIRE_FINDINGS_END)
        return false;
    struct errors *errors = known(message->pid);
    errors->muted = process->muted;
    switch (message->type) {
    case WIRE_LEDGER:
        take_ledger(errors, message->fd);
        break;
    case WIRE_FINDING:
        take_finding(errors, message);
        break;
    case WIRE_LEAKS:
        leaks_begin(errors, message->leaks);
        search_progress(errors);
        break;
    case WIRE_LOSSES:
        take_losses(errors, message);
        search_progress(errors);
        break;
    case WIRE_FINDINGS_END:
        take_end(errors, message->findings_end);
        break;
    default:
        break;
    }
    return true;
}

void findings_finish(const struct followed *process) {
    struct errors *errors = find(process->pid);
    if (!errors)
        return;
    errors->muted = process->muted;
    // A process that became another program is not summed up: it has not ended as this one. Nor is
    // one that borrowed its parent's memory, and its ledger, until it became one.
    bool counts = !process->away && errors->ledger >= 0;
    if (counts && !errors->stopped) {
        summary_count(errors);
        summary_show(errors);
    }
    if (process->pid == findings.main_pid)
        findings.main_failed = counts && (errors->stopped || summary_failures(errors) > 0);
    for (size_t i = 0; i < errors->context_count; i++) {
        struct context *context = &errors->contexts[i];
        if (context->result && context->result->pid == errors->pid)
            context->result->count = context->count;
    }
    xml_drop(process->pid);
    forget(errors);
}

bool findings_main_failed(void) {
    return findings.main_failed;
}
