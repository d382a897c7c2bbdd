// The summary of a process that has ended: its heap, its losses, its contexts.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/memcheck/supervisor/parts.h"

void summary_count(struct process_findings *process) {
    for (size_t i = 0; i < process->context_count; i++) {
        struct context *context = &process->contexts[i];
        uint64_t count;
        if (ledger_read(process, offsetof(struct ledger, counts) + context->number * sizeof count,
                        &count, sizeof count) &&
            count)
            context->count = count;
    }
}

struct sums {
    uint64_t findings, contexts, suppressed, suppressed_contexts;
};

static struct sums sum_up(const struct process_findings *process) {
    struct sums sums = {.findings = process->counted_losses,
                        .contexts = process->counted_losses,
                        .suppressed = process->hidden_count,
                        .suppressed_contexts = process->hidden_count};
    for (size_t i = 0; i < process->context_count; i++) {
        const struct context *context = &process->contexts[i];
        *(context->suppressed_by ? &sums.suppressed : &sums.findings) += context->count;
        *(context->suppressed_by ? &sums.suppressed_contexts : &sums.contexts) += 1;
    }
    return sums;
}

uint64_t summary_failures(const struct process_findings *process) {
    uint64_t failures = sum_up(process).findings - process->known_leaks;
    for (size_t i = 0; i < process->context_count; i++) {
        const struct context *context = &process->contexts[i];
        if (context->result && context->result->known)
            failures -= context->count;
    }
    return failures;
}

// ---- the heap ----------------------------------------------------------------------------------

// Of a process that was killed: what its threads had written down by then.
static struct heap_sums heap_of_killed(const struct process_findings *process) {
    static struct ledger_heap threads[LEDGER_THREADS];
    struct heap_sums heap = {0};
    if (!ledger_read(process, offsetof(struct ledger, threads), threads, sizeof threads))
        return heap;
    for (size_t i = 0; i < LEDGER_THREADS; i++) {
        const struct ledger_heap *thread = &threads[i];
        heap.allocations += thread->allocations + thread->failed_resizes;
        heap.frees += thread->frees + thread->failed_frees;
        heap.bytes += thread->bytes + thread->failed_resize_bytes;
        heap.live_blocks += thread->allocations - thread->frees;
        heap.live_bytes += thread->bytes - thread->freed_bytes;
    }
    if (!heap.allocations)
        ledger_read(process, offsetof(struct ledger, heap), &heap, sizeof heap);
    return heap;
}

static void show_heap(struct process_findings *process, const struct heap_sums *heap) {
    struct text text = {0};
    text_string(&text, "HEAP SUMMARY:\n    in use at exit: ");
    text_commas(&text, heap->live_bytes);
    text_string(&text, " bytes in ");
    text_commas(&text, heap->live_blocks);
    text_string(&text, " blocks\n  total heap usage: ");
    text_commas(&text, heap->allocations);
    text_string(&text, " allocs, ");
    text_commas(&text, heap->frees);
    text_string(&text, " frees, ");
    text_commas(&text, heap->bytes);
    text_string(&text, " bytes allocated");
    findings_say(process, text.bytes);
    findings_say(process, "");
    text_free(&text);
}

static void show_leaks(struct process_findings *process) {
    const struct search *search = &process->search;
    bool text = log_shows(process->run->log, 0) && !process->run->request->xml.wanted;
    if (search->done && search->facts.at_end) {
        leaks_show(process);
    } else if (text && !process->ended) {
        findings_say(process, "The process was killed: blocks that nobody points to could not be "
                              "searched for.\nErrors and totals are those up to then.");
        findings_say(process, "");
    } else if (text && settings_of(process)->leak_check == LEAK_CHECK_NO) {
        findings_say(process, "For a detailed leak analysis, rerun with: --leak-check=full");
        findings_say(process, "");
    } else if (text && !process->heap.live_blocks) {
        findings_say(process, "All heap blocks were freed -- no leaks are possible");
        findings_say(process, "");
    }
}

// ---- the list of contexts (-s) -----------------------------------------------------------------

// Rarest first; among equals the latest first, as Valgrind has them.
static int by_count(const void *a, const void *b) {
    const struct context *x = *(struct context *const *)a, *y = *(struct context *const *)b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x > y ? -1 : x < y;
}

// Whether there was anything to list; losses are not.
static bool show_list(struct process_findings *process, uint64_t contexts) {
    bool all = settings_of(process)->list == LIST_ALL;
    struct context **order = base_allocate(process->context_count * sizeof *order);
    size_t count = 0;
    for (size_t i = 0; i < process->context_count; i++)
        if (all || !process->contexts[i].suppressed_by)
            order[count++] = &process->contexts[i];
    qsort(order, count, sizeof *order, by_count);
    for (size_t i = 0; i < count; i++) {
        const struct named_finding *finding = order[i]->finding;
        struct text head = {0};
        struct text text = {0};
        text_format(
            &head, "\n%" PRIu64 " errors in context %zu of %" PRIu64 "%s%s:", order[i]->count,
            i + 1, all ? count : contexts, order[i]->suppressed_by ? ", suppressed by " : "",
            order[i]->suppressed_by ? order[i]->suppressed_by->name : "");
        findings_say(process, head.bytes);
        finding_text(finding, &process->run->request->stacks, &text);
        findings_show(process, finding->facts.thread, finding->facts.thread_name, text.bytes, NULL);
        text_free(&head);
        text_free(&text);
    }
    free(order);
    return count > 0;
}

// Suppressions are counted for all processes in one place: this process's share.
static bool count_suppressions(const struct process_findings *process) {
    struct suppressions *suppressions = settings_of(process)->suppressions;
    struct suppression *next = suppressions_next_used(suppressions, NULL);
    while (next) {
        struct suppression *used = next;
        next = suppressions_next_used(suppressions, used);
        used->used = used->leaked_bytes = used->leaked_blocks = 0;
    }
    for (size_t i = 0; i < process->context_count; i++)
        if (process->contexts[i].suppressed_by)
            process->contexts[i].suppressed_by->used += process->contexts[i].count;
    for (size_t i = 0; i < process->hidden_count; i++) {
        process->hidden[i].by->used++;
        process->hidden[i].by->leaked_bytes += process->hidden[i].bytes;
        process->hidden[i].by->leaked_blocks += process->hidden[i].blocks;
    }
    return suppressions_next_used(suppressions, NULL);
}

static void show_suppressions(struct process_findings *process) {
    struct suppressions *suppressions = settings_of(process)->suppressions;
    if (process->muted)
        return;
    log_print(process->run->log, process->pid, LOG_DEBUGGING, "");
    for (struct suppression *used = suppressions_next_used(suppressions, NULL); used;
         used = suppressions_next_used(suppressions, used)) {
        struct text line = {0};
        suppressions_used_text(used, &line);
        log_print(process->run->log, process->pid, LOG_DEBUGGING, line.bytes);
        text_free(&line);
    }
}

// Numbers without commas, as Valgrind has them here.
static void show_sums(struct process_findings *process, const struct sums *sums) {
    struct text text = {0};
    text_format(&text,
                "ERROR SUMMARY: %" PRIu64 " errors from %" PRIu64 " contexts (suppressed: %" PRIu64
                " from %" PRIu64 ")",
                sums->findings, sums->contexts, sums->suppressed, sums->suppressed_contexts);
    findings_say(process, text.bytes);
    text_free(&text);
}

static void show_contexts(struct process_findings *process) {
    const struct findings_settings *settings = settings_of(process);
    struct sums sums = sum_up(process);
    uint32_t full = 0;
    if (ledger_read(process, offsetof(struct ledger, full), &full, sizeof full) && full)
        findings_say(process, "There were more different errors than could be told apart.");
    if (settings->list == LIST_NO && !log_shows(process->run->log, 1))
        findings_say(process, "For lists of detected and suppressed errors, rerun with: -s");
    show_sums(process, &sums);
    if (settings->list == LIST_NO)
        return;
    bool listed = show_list(process, sums.contexts);
    bool any = count_suppressions(process);
    if (any)
        show_suppressions(process);
    if (any || listed) {
        if (any)
            findings_say(process, "");
        show_sums(process, &sums);
    }
}

// ---- XML ---------------------------------------------------------------------------------------

static void finish_xml(struct process_findings *process) {
    struct text text = {0};
    text_char(&text, '\n');
    xml_status(&text, "FINISHED", log_milliseconds(process->run->log));
    xml_put(process->run->request, process->pid, &text);
    text_clear(&text);
    bool has_summaries = process->run->request->xml.protocol >= 6;
    const struct heap_sums *heap = &process->heap;
    if (has_summaries)
        xml_heap_summary(&text, &(struct xml_heap){heap->live_bytes, heap->live_blocks,
                                                   heap->allocations, heap->frees, heap->bytes});
    xml_put(process->run->request, process->pid, &text);
    text_clear(&text);
    show_leaks(process);
    if (process->stopped)
        return;
    if (has_summaries && heap->live_blocks)
        xml_leak_summary(&text, &process->last_sums);
    text_string(&text, "<errorcounts>\n");
    for (size_t i = process->context_count; i--;) {
        if (!process->contexts[i].suppressed_by)
            text_format(&text,
                        "  <pair>\n    <count>%" PRIu64 "</count>\n    <unique>0x%" PRIx64
                        "</unique>\n"
                        "  </pair>\n",
                        process->contexts[i].count, process->contexts[i].unique);
    }
    text_string(&text, "</errorcounts>\n\n<suppcounts>\n");
    count_suppressions(process);
    for (struct suppression *used =
             suppressions_next_used(settings_of(process)->suppressions, NULL);
         used; used = suppressions_next_used(settings_of(process)->suppressions, used)) {
        text_format(&text, "  <pair>\n    <count>%" PRIu64 "</count>\n    <name>", used->used);
        xml_escaped(&text, used->name);
        text_string(&text, "</name>\n  </pair>\n");
    }
    text_string(&text, "</suppcounts>\n\n");
    struct sums sums = sum_up(process);
    if (has_summaries)
        xml_error_summary(&text, sums.findings, sums.contexts, sums.suppressed,
                          sums.suppressed_contexts);
    text_string(&text, "</valgrindoutput>\n\n");
    xml_put(process->run->request, process->pid, &text);
    text_free(&text);
}

static void show_all(struct process_findings *process) {
    const struct findings_settings *settings = settings_of(process);
    if (process->run->request->xml.wanted) {
        memory_write_xtree(process);
        if (!process->muted)
            finish_xml(process);
        return;
    }
    if (log_shows(process->run->log, 0))
        findings_say(process, "");
    memory_write_xtree(process);
    if (log_shows(process->run->log, 0))
        show_heap(process, &process->heap);
    show_leaks(process);
    if (process->stopped || (!log_shows(process->run->log, 0) && settings->list == LIST_NO))
        return;
    if (process->has_values && !settings->track_origins && log_shows(process->run->log, 0) &&
        !log_shows(process->run->log, 1))
        findings_say(process,
                     "Use --track-origins=yes to see where uninitialised values come from");
    show_contexts(process);
    char *baseline = process->pid == process->run->main_pid
                         ? outputs_baseline_line(process->run->request)
                         : NULL;
    if (baseline)
        findings_say(process, baseline);
    free(baseline);
}

void summary_show(struct process_findings *process) {
    if (!process->ended)
        process->heap = heap_of_killed(process);
    show_all(process);
    leaks_check(process);
}
