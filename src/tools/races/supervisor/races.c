#include "tools/races/supervisor/races.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vector.h"
#include "tools/races/ledger.h"

#define RULE "----------------------------------------------------------------"

// ---- processes ---------------------------------------------------------------------------------

struct races_process *races_find(const struct races *races, int pid) {
    for (size_t i = 0; i < races->process_count; i++)
        if (races->processes[i]->pid == pid)
            return races->processes[i];
    return NULL;
}

struct races_process *races_find_or_add(struct races *races, int pid) {
    struct races_process *process = races_find(races, pid);
    if (process)
        return process;
    process = base_allocate(sizeof *process);
    *process = (struct races_process){.pid = pid, .ledger = -1, .cache = named_cache_new()};
    *vector_push(races->processes, races->process_count) = process;
    return process;
}

void races_forget(struct races *races, struct races_process *process) {
    for (size_t i = 0; i < races->process_count; i++) {
        if (races->processes[i] == process) {
            races->processes[i] = races->processes[--races->process_count];
            break;
        }
    }
    for (size_t i = 0; i < process->context_count; i++)
        if (process->contexts[i].finding)
            named_finding_drop(process->contexts[i].finding);
    for (size_t i = 0; i < process->creation_count; i++)
        free(process->creations[i].pcs);
    if (process->ledger >= 0)
        close(process->ledger);
    named_cache_free(process->cache);
    free(process->contexts);
    free(process->creations);
    free(process);
}

struct naming races_naming(const struct tool_run *run, struct races_process *process) {
    return (struct naming){run->symbols, process->cache, process->pid, &run->request->stacks};
}

void races_say(struct tool_run *run, const struct followed *followed, const char *text) {
    if (!followed->muted)
        log_print(run->log, followed->pid, LOG_USER, text);
}

// ---- answers -----------------------------------------------------------------------------------

static void answer(const struct races_process *process, uint32_t context,
                   enum races_answer answer) {
    uint8_t byte = (uint8_t)answer;
    off_t shown = (off_t)offsetof(struct races_ledger, shown);
    off_t at = (off_t)(offsetof(struct races_ledger, answers) + context);
    if (process->ledger >= 0 &&
        (pwrite(process->ledger, &process->shown, sizeof process->shown, shown) < 0 ||
         pwrite(process->ledger, &byte, 1, at) < 0))
        return; // the process has cut it short
}

static void answer_end(const struct races_process *process, bool failed) {
    uint32_t end = failed ? 2 : 1;
    off_t at = (off_t)offsetof(struct races_ledger, end);
    if (process->ledger >= 0 && pwrite(process->ledger, &end, sizeof end, at) < 0)
        return;
}

// ---- judging -----------------------------------------------------------------------------------

// An instruction that reads, changes and writes without a lock prefix is no atomic one, whatever is
// known of it.
static bool is_surely_plain(const struct tool_run *run, int pid, const struct finding_stack *stack,
                            bool *is_atomic) {
    enum atomic_code code =
        stack->count ? atomics_look(run->symbols, pid, stack->pcs[0]) : CODE_IS_UNKNOWN;
    *is_atomic |= code == CODE_IS_ATOMIC;
    return code == CODE_IS_PLAIN;
}

static bool is_race(const struct tool_run *run, int pid, const struct finding *finding) {
    bool is_atomic = false;
    bool now = is_surely_plain(run, pid, &finding->stacks[STACK_OF_FINDING], &is_atomic) ||
               finding->facts.fault & RACE_CHANGES;
    bool before = is_surely_plain(run, pid, &finding->stacks[STACK_OF_ORIGIN], &is_atomic) ||
                  finding->facts.fault & RACE_CHANGED;
    return now && before && !is_atomic;
}

// ---- showing -----------------------------------------------------------------------------------

static struct races_creation *creation_of(struct races_process *process, int thread) {
    for (size_t i = 0; i < process->creation_count; i++)
        if (process->creations[i].thread == thread)
            return &process->creations[i];
    struct races_creation *creation = vector_push(process->creations, process->creation_count);
    *creation = (struct races_creation){.thread = thread};
    return creation;
}

static void add_line(void *context, const char *line) {
    text_format(context, "%s\n", line);
}

static void add_creation_xml(struct tool_run *run, struct races_process *process,
                             const struct races_creation *creation, struct text *text) {
    struct naming naming = races_naming(run, process);
    struct stack stack = {
        .pid = process->pid, .addresses = creation->pcs, .count = creation->count};
    struct named_stack named =
        named_stack_make(naming.symbols, naming.cache, &stack, naming.options);
    text_format(text, "<announcethread>\n  <hthreadid>%d</hthreadid>\n", creation->thread);
    if (creation->count)
        xml_stack(text, &named);
    else
        text_string(text, "  <isrootthread></isrootthread>\n");
    text_string(text, "</announcethread>\n\n");
    named_stack_free(&named);
}

// Says once who the thread is.
static void announce(struct tool_run *run, struct followed *followed, struct races_process *process,
                     int thread) {
    struct races_creation *creation = creation_of(process, thread);
    struct text text = {0};
    if (creation->is_shown)
        return;
    creation->is_shown = true;
    if (run->request->xml.wanted) {
        add_creation_xml(run, process, creation, &text);
        if (!followed->muted)
            xml_put(run->request, process->pid, &text);
        text_free(&text);
        return;
    }
    text_string(&text, "---Thread-Announcement------------------------------------------\n\n");
    if (thread == 1) {
        text_string(&text, "Thread #1 is the program's root thread\n");
    } else {
        text_format(&text, "Thread #%d was created\n", thread);
        stack_text(run->symbols,
                   &(struct stack){
                       .pid = process->pid, .addresses = creation->pcs, .count = creation->count},
                   &run->request->stacks, add_line, &text);
    }
    races_say(run, followed, text.bytes);
    races_say(run, followed, "");
    text_free(&text);
}

static void show(struct tool_run *run, struct followed *followed, struct races_process *process,
                 const struct races_context *context) {
    const struct races *races = run->state;
    const struct named_finding *finding = context->finding;
    struct text text = {0};
    announce(run, followed, process, finding->facts.thread);
    if (finding->facts.kind == FINDING_RACE)
        announce(run, followed, process, (int)finding->facts.value);
    if (run->request->xml.wanted) {
        xml_finding(&text, finding, context->unique, &run->request->stacks,
                    races->settings.generates);
        if (!followed->muted)
            xml_put(run->request, process->pid, &text);
    } else {
        text_string(&text, RULE "\n\n");
        finding_text(finding, &run->request->stacks, &text);
        races_say(run, followed, text.bytes);
        races_say(run, followed, "");
        if (races->settings.generates && !followed->muted) {
            text_clear(&text);
            finding_suppression(finding, &text);
            log_raw(run->log, process->pid, text.bytes);
        }
    }
    text_free(&text);
}

// ---- messages ----------------------------------------------------------------------------------

static void take_creation(struct races_process *process, const struct finding *finding) {
    struct races_creation *creation = creation_of(process, (int)finding->facts.value);
    const struct finding_stack *stack = &finding->stacks[STACK_OF_FINDING];
    free(creation->pcs);
    creation->pcs = base_allocate(stack->count * sizeof *stack->pcs + 1);
    memcpy(creation->pcs, stack->pcs, stack->count * sizeof *stack->pcs);
    creation->count = stack->count;
    creation->is_shown = false;
}

// With -v: a conflict that is taken for a way of synchronising.
static void tell_silence(struct tool_run *run, struct races_process *process,
                         const struct finding *finding) {
    struct naming naming = races_naming(run, process);
    struct text text = {0};
    if (!log_shows(run->log, 1))
        return;
    struct named_finding *named = named_finding_make(&naming, finding);
    text_string(&text, "Not reported, since it may be atomic:\n");
    finding_text(named, &run->request->stacks, &text);
    log_print(run->log, process->pid, LOG_DEBUGGING, text.bytes);
    named_finding_drop(named);
    text_free(&text);
}

static enum races_answer take_error(struct tool_run *run, struct followed *followed,
                                    struct races_process *process, const struct finding *finding,
                                    uint32_t number) {
    const struct races_settings *settings = &((struct races *)run->state)->settings;
    struct naming naming = races_naming(run, process);
    if (finding->facts.kind == FINDING_RACE && !is_race(run, process->pid, finding)) {
        tell_silence(run, process, finding);
        return ANSWER_ATOMIC;
    }
    if (process->is_stopped)
        return ANSWER_SUPPRESSED;
    struct races_context *context = vector_push(process->contexts, process->context_count);
    *context = (struct races_context){.number = number,
                                      .finding = named_finding_make(&naming, finding),
                                      .unique = process->next_unique++,
                                      .count = 1};
    context->suppressed_by = finding_suppressed_by(context->finding, settings->suppressions);
    if (context->suppressed_by)
        return ANSWER_SUPPRESSED;
    show(run, followed, process, context);
    process->shown++;
    if (outputs_results(run->request) && !followed->muted)
        context->result = results_add_finding(outputs_results(run->request), context->finding,
                                              &run->request->stacks, process->pid);
    if (!settings->exits_on_first)
        return ANSWER_SHOWN;
    process->is_stopped = true;
    races_say(run, followed, "\nExit program on first error (--exit-on-first-error=yes)");
    return ANSWER_STOP;
}

bool races_take(struct tool_run *run, struct followed *followed,
                const struct wire_message *message) {
    struct races_process *process;
    if (message->type != WIRE_LEDGER && message->type != WIRE_FINDING &&
        message->type != WIRE_FINDINGS_END)
        return false;
    process = races_find_or_add(run->state, message->pid);
    if (message->type == WIRE_LEDGER) {
        if (process->ledger >= 0)
            close(process->ledger);
        process->ledger = fd_move_high(message->fd);
        process->ledger_is_new = true;
    } else if (message->type == WIRE_FINDINGS_END) {
        process->has_ended = true;
        races_count(process);
        answer_end(process, races_failures(process) > 0);
    } else {
        struct finding finding = wire_finding_parts(message->finding);
        uint32_t number = message->finding->context;
        if (!finding_kind_is_about_threads(finding.facts.kind))
            return false;
        if (number >= RACES_CONTEXTS)
            return true;
        if (finding.facts.kind == FINDING_THREAD)
            take_creation(process, &finding);
        else
            answer(process, number, take_error(run, followed, process, &finding, number));
    }
    return true;
}
