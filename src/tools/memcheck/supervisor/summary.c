// What is said of a process when it has ended: its heap, its leaks, its errors.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/findings/text.h"
#include "report/findings/xml.h"
#include "tools/memcheck/supervisor/parts.h"

static bool read_ledger(const struct errors *errors, size_t offset, void *to, size_t size) {
    return errors->ledger >= 0 && pread(errors->ledger, to, size, (off_t)offset) == (ssize_t)size;
}

void summary_count(struct errors *errors) {
    for (size_t i = 0; i < errors->context_count; i++) {
        struct context *context = &errors->contexts[i];
        uint64_t count;
        if (read_ledger(errors, offsetof(struct ledger, counts) + context->number * sizeof count,
                        &count, sizeof count) &&
            count)
            context->count = count;
    }
}

struct sums {
    uint64_t errors, contexts, suppressed, suppressed_contexts;
};

static struct sums sum_up(const struct errors *errors) {
    struct sums sums = {.errors = errors->leak_errors,
                        .contexts = errors->leak_errors,
                        .suppressed = errors->hidden_count,
                        .suppressed_contexts = errors->hidden_count};
    for (size_t i = 0; i < errors->context_count; i++) {
        const struct context *context = &errors->contexts[i];
        *(context->suppressed_by ? &sums.suppressed : &sums.errors) += context->count;
        *(context->suppressed_by ? &sums.suppressed_contexts : &sums.contexts) += 1;
    }
    return sums;
}

uint64_t summary_failures(const struct errors *errors) {
    uint64_t failures = sum_up(errors).errors - errors->known_leaks;
    for (size_t i = 0; i < errors->context_count; i++) {
        const struct context *context = &errors->contexts[i];
        if (context->result && context->result->known)
            failures -= context->count;
    }
    return failures;
}

// ---- the heap ----------------------------------------------------------------------------------

// Of a process that was killed: what its threads had written down by then.
static struct heap_sums heap_of_killed(const struct errors *errors) {
    static struct ledger_heap threads[LEDGER_THREADS];
    struct heap_sums heap = {0};
    if (!read_ledger(errors, offsetof(struct ledger, threads), threads, sizeof threads))
        return heap;
    uint64_t freed = 0;
    for (size_t i = 0; i < LEDGER_THREADS; i++) {
        heap.allocations += threads[i].allocations;
        heap.frees += threads[i].frees;
        heap.bytes += threads[i].bytes;
        freed += threads[i].freed_bytes;
    }
    heap.live_blocks = heap.allocations - heap.frees;
    heap.live_bytes = heap.bytes - freed;
    if (!heap.allocations)
        read_ledger(errors, offsetof(struct ledger, heap), &heap, sizeof heap);
    return heap;
}

static void show_heap(struct errors *errors, const struct heap_sums *heap) {
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
    findings_say(errors, text.bytes);
    findings_say(errors, "");
    text_free(&text);
}

static void show_leaks(struct errors *errors) {
    const struct search *search = &errors->search;
    bool text = log_shows(0) && !findings.request->xml.wanted;
    if (search->done && search->facts.at_end) {
        leaks_show(errors);
    } else if (text && !errors->ended) {
        findings_say(errors, "The process was killed: blocks that nobody points to could not be "
                             "searched for.\nErrors and totals are those up to then.");
        findings_say(errors, "");
    } else if (text && FINDINGS_SETTINGS->leak_check == LEAK_CHECK_NO) {
        findings_say(errors, "For a detailed leak analysis, rerun with: --leak-check=full");
        findings_say(errors, "");
    } else if (text && !errors->heap.live_blocks) {
        findings_say(errors, "All heap blocks were freed -- no leaks are possible");
        findings_say(errors, "");
    }
}

// ---- the list of errors (-s) -------------------------------------------------------------------

// Rarest first; among equals the latest first, as Valgrind has them.
static int by_count(const void *a, const void *b) {
    const struct context *x = *(struct context *const *)a, *y = *(struct context *const *)b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x > y ? -1 : x < y;
}

// Whether there was anything to list; losses are not.
static bool show_list(struct errors *errors, uint64_t contexts) {
    bool all = FINDINGS_SETTINGS->list == LIST_ALL;
    struct context **order = base_allocate(errors->context_count * sizeof *order);
    size_t count = 0;
    for (size_t i = 0; i < errors->context_count; i++)
        if (all || !errors->contexts[i].suppressed_by)
            order[count++] = &errors->contexts[i];
    qsort(order, count, sizeof *order, by_count);
    for (size_t i = 0; i < count; i++) {
        const struct finding *finding = order[i]->finding;
        struct text head = {0};
        struct text text = {0};
        text_format(
            &head, "\n%" PRIu64 " errors in context %zu of %" PRIu64 "%s%s:", order[i]->count,
            i + 1, all ? count : contexts, order[i]->suppressed_by ? ", suppressed by " : "",
            order[i]->suppressed_by ? order[i]->suppressed_by->name : "");
        findings_say(errors, head.bytes);
        finding_text(finding, &findings.request->stacks, &text);
        findings_show(errors, finding->facts->thread, finding->facts->thread_name, text.bytes,
                      NULL);
        text_free(&head);
        text_free(&text);
    }
    free(order);
    return count > 0;
}

// Suppressions are counted for all processes in one place: this process's share.
static bool count_suppressions(const struct errors *errors) {
    struct suppressions *suppressions = FINDINGS_SETTINGS->suppressions;
    struct suppression *next = suppressions_next_used(suppressions, NULL);
    while (next) {
        struct suppression *used = next;
        next = suppressions_next_used(suppressions, used);
        used->used = used->leaked_bytes = used->leaked_blocks = 0;
    }
    for (size_t i = 0; i < errors->context_count; i++)
        if (errors->contexts[i].suppressed_by)
            errors->contexts[i].suppressed_by->used += errors->contexts[i].count;
    for (size_t i = 0; i < errors->hidden_count; i++) {
        errors->hidden[i].by->used++;
        errors->hidden[i].by->leaked_bytes += errors->hidden[i].bytes;
        errors->hidden[i].by->leaked_blocks += errors->hidden[i].blocks;
    }
    return suppressions_next_used(suppressions, NULL);
}

static void show_suppressions(struct errors *errors) {
    struct suppressions *suppressions = FINDINGS_SETTINGS->suppressions;
    if (errors->muted)
        return;
    log_print(errors->pid, LOG_DEBUGGING, "");
    for (struct suppression *used = suppressions_next_used(suppressions, NULL); used;
         used = suppressions_next_used(suppressions, used)) {
        struct text line = {0};
        suppressions_used_text(used, &line);
        log_print(errors->pid, LOG_DEBUGGING, line.bytes);
        text_free(&line);
    }
}

// Numbers without commas, as Valgrind has them here.
static void show_error_sums(struct errors *errors, const struct sums *sums) {
    struct text text = {0};
    text_format(&text,
                "ERROR SUMMARY: %" PRIu64 " errors from %" PRIu64 " contexts (suppressed: %" PRIu64
                " from %" PRIu64 ")",
                sums->errors, sums->contexts, sums->suppressed, sums->suppressed_contexts);
    findings_say(errors, text.bytes);
    text_free(&text);
}

static void show_errors(struct errors *errors) {
    const struct findings_settings *settings = FINDINGS_SETTINGS;
    struct sums sums = sum_up(errors);
    uint32_t full = 0;
    if (read_ledger(errors, offsetof(struct ledger, full), &full, sizeof full) && full)
        findings_say(errors, "There were more different errors than could be told apart.");
    if (settings->list == LIST_NO && !log_shows(1))
        findings_say(errors, "For lists of detected and suppressed errors, rerun with: -s");
    show_error_sums(errors, &sums);
    if (settings->list == LIST_NO)
        return;
    bool listed = show_list(errors, sums.contexts);
    bool any = count_suppressions(errors);
    if (any)
        show_suppressions(errors);
    if (any || listed) {
        if (any)
            findings_say(errors, "");
        show_error_sums(errors, &sums);
    }
}

// ---- XML ---------------------------------------------------------------------------------------

static void finish_xml(struct errors *errors) {
    struct text text = {0};
    text_char(&text, '\n');
    xml_status(&text, "FINISHED", log_milliseconds());
    xml_put(errors->pid, &text);
    text_clear(&text);
    show_leaks(errors);
    text_string(&text, "<errorcounts>\n");
    for (size_t i = errors->context_count; i--;) {
        if (!errors->contexts[i].suppressed_by)
            text_format(&text,
                        "  <pair>\n    <count>%" PRIu64 "</count>\n    <unique>0x%" PRIx64
                        "</unique>\n"
                        "  </pair>\n",
                        errors->contexts[i].count, errors->contexts[i].unique);
    }
    text_string(&text, "</errorcounts>\n\n<suppcounts>\n");
    count_suppressions(errors);
    for (struct suppression *used = suppressions_next_used(FINDINGS_SETTINGS->suppressions, NULL);
         used; used = suppressions_next_used(FINDINGS_SETTINGS->suppressions, used)) {
        text_format(&text, "  <pair>\n    <count>%" PRIu64 "</count>\n    <name>", used->used);
        xml_escaped(&text, used->name);
        text_string(&text, "</name>\n  </pair>\n");
    }
    text_string(&text, "</suppcounts>\n\n</valgrindoutput>\n\n");
    xml_put(errors->pid, &text);
    text_free(&text);
}

static void show_all(struct errors *errors) {
    const struct findings_settings *settings = FINDINGS_SETTINGS;
    if (findings.request->xml.wanted) {
        memory_write_xtree(errors);
        if (!errors->muted)
            finish_xml(errors);
        return;
    }
    if (log_shows(0))
        findings_say(errors, "");
    memory_write_xtree(errors);
    if (log_shows(0))
        show_heap(errors, &errors->heap);
    show_leaks(errors);
    if (!log_shows(0) && settings->list == LIST_NO)
        return;
    if (errors->has_values && !settings->track_origins && log_shows(0) && !log_shows(1))
        findings_say(errors, "Use --track-origins=yes to see where uninitialised values come from");
    show_errors(errors);
    char *baseline = errors->pid == findings.main_pid ? outputs_baseline_line() : NULL;
    if (baseline)
        findings_say(errors, baseline);
    free(baseline);
}

void summary_show(struct errors *errors) {
    if (!errors->ended)
        errors->heap = heap_of_killed(errors);
    show_all(errors);
    leaks_check(errors);
}
