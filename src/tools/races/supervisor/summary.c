// The end of a process: counts, lists, the summary.
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/races/ledger.h"
#include "tools/races/supervisor/races.h"

void races_count(struct races_process *process) {
    for (size_t i = 0; i < process->context_count; i++) {
        struct races_context *context = &process->contexts[i];
        uint64_t count;
        off_t at = (off_t)(offsetof(struct races_ledger, counts) + context->number * sizeof count);
        if (process->ledger >= 0 &&
            pread(process->ledger, &count, sizeof count, at) == sizeof count && count)
            context->count = count;
    }
}

struct sums {
    uint64_t findings, contexts, suppressed, suppressed_contexts;
};

static struct sums sum_up(const struct races_process *process) {
    struct sums sums = {0};
    for (size_t i = 0; i < process->context_count; i++) {
        const struct races_context *context = &process->contexts[i];
        if (!context->finding)
            continue;
        *(context->suppressed_by ? &sums.suppressed : &sums.findings) += context->count;
        *(context->suppressed_by ? &sums.suppressed_contexts : &sums.contexts) += 1;
    }
    return sums;
}

uint64_t races_failures(const struct races_process *process) {
    uint64_t failures = sum_up(process).findings;
    for (size_t i = 0; i < process->context_count; i++) {
        const struct races_context *context = &process->contexts[i];
        if (context->result && context->result->known)
            failures -= context->count;
    }
    return failures;
}

static struct suppression *count_suppressions(struct suppressions *suppressions,
                                              const struct races_process *process) {
    struct suppression *next = suppressions_next_used(suppressions, NULL);
    while (next) {
        struct suppression *used = next;
        next = suppressions_next_used(suppressions, used);
        used->used = 0;
    }
    for (size_t i = 0; i < process->context_count; i++)
        if (process->contexts[i].suppressed_by)
            process->contexts[i].suppressed_by->used += process->contexts[i].count;
    return suppressions_next_used(suppressions, NULL);
}

static void finish_xml(struct tool_run *run, struct races_process *process) {
    struct suppressions *suppressions = ((struct races *)run->state)->settings.suppressions;
    struct text text = {0};
    text_char(&text, '\n');
    xml_status(&text, "FINISHED", log_milliseconds(run->log));
    text_string(&text, "<errorcounts>\n");
    for (size_t i = process->context_count; i--;) {
        const struct races_context *context = &process->contexts[i];
        if (context->finding && !context->suppressed_by)
            text_format(&text,
                        "  <pair>\n    <count>%" PRIu64 "</count>\n    <unique>0x%" PRIx64
                        "</unique>\n  </pair>\n",
                        context->count, context->unique);
    }
    text_string(&text, "</errorcounts>\n\n<suppcounts>\n");
    for (struct suppression *used = count_suppressions(suppressions, process); used;
         used = suppressions_next_used(suppressions, used)) {
        text_format(&text, "  <pair>\n    <count>%" PRIu64 "</count>\n    <name>", used->used);
        xml_escaped(&text, used->name);
        text_string(&text, "</name>\n  </pair>\n");
    }
    text_string(&text, "</suppcounts>\n\n</valgrindoutput>\n\n");
    xml_put(run->request, process->pid, &text);
    text_free(&text);
}

static void list_contexts(struct tool_run *run, struct followed *followed,
                          const struct races_process *process, uint64_t contexts) {
    uint64_t number = 0;
    for (size_t i = 0; i < process->context_count; i++) {
        const struct races_context *context = &process->contexts[i];
        struct text text = {0};
        if (!context->finding || context->suppressed_by)
            continue;
        text_format(&text, "\n%" PRIu64 " errors in context %" PRIu64 " of %" PRIu64 ":\n",
                    context->count, ++number, contexts);
        finding_text(context->finding, &run->request->stacks, &text);
        races_say(run, followed, text.bytes);
        text_free(&text);
    }
}

void races_summary(struct tool_run *run, struct followed *followed, struct races_process *process) {
    const struct races_settings *settings = &((struct races *)run->state)->settings;
    struct sums sums = sum_up(process);
    struct text text = {0};
    if (run->request->xml.wanted) {
        if (!followed->muted)
            finish_xml(run, process);
        return;
    }
    if (!log_shows(run->log, 0) && !settings->lists)
        return;
    races_say(run, followed, "");
    if (!settings->lists && !log_shows(run->log, 1))
        races_say(run, followed, "For lists of detected and suppressed errors, rerun with: -s");
    text_format(&text,
                "ERROR SUMMARY: %" PRIu64 " errors from %" PRIu64 " contexts (suppressed: %" PRIu64
                " from %" PRIu64 ")",
                sums.findings, sums.contexts, sums.suppressed, sums.suppressed_contexts);
    races_say(run, followed, text.bytes);
    if (settings->lists) {
        list_contexts(run, followed, process, sums.contexts);
        for (struct suppression *used = count_suppressions(settings->suppressions, process); used;
             used = suppressions_next_used(settings->suppressions, used)) {
            struct text line = {0};
            suppressions_used_text(used, &line);
            log_print(run->log, process->pid, LOG_DEBUGGING, line.bytes);
            text_free(&line);
        }
        races_say(run, followed, text.bytes);
    }
    text_free(&text);
}
