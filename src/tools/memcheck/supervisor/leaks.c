// The losses of a search for leaks: suppressed, shown, summed up.
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "tools/memcheck/supervisor/parts.h"

void leaks_drop(struct process_findings *process) {
    struct search *search = &process->search;
    for (size_t i = 0; i < search->count; i++)
        named_loss_free(&search->losses[i]);
    free(search->losses);
    *search = (struct search){0};
}

void leaks_begin(struct process_findings *process, const struct wire_leaks *message) {
    leaks_drop(process);
    process->search.active = true;
    process->search.facts = *message;
    process->search.old_sums = process->last_sums;
    process->last_sums = (struct leak_sums){0};
    memcpy(process->last_sums.heuristic_blocks, message->heuristic_blocks,
           sizeof message->heuristic_blocks);
    memcpy(process->last_sums.heuristic_bytes, message->heuristic_bytes,
           sizeof message->heuristic_bytes);
}

static bool in(unsigned kinds, const struct named_loss *loss) {
    return kinds & 1u << loss->facts.kind;
}

static bool is_counted(const struct process_findings *process, const struct named_loss *loss) {
    return process->search.facts.full && !loss->facts.is_quiet;
}

static void hide(struct process_findings *process, struct suppression *by,
                 const struct loss *facts) {
    *vector_push(process->hidden, process->hidden_count) = (struct hidden_loss){
        .by = by, .bytes = facts->bytes + facts->indirect_bytes, .blocks = facts->blocks};
}

// Takes a loss into the sums. A suppressed one is not shown.
static void judge(struct process_findings *process, struct named_loss *loss) {
    struct suppression *by =
        loss_suppressed_by(loss, &loss->stack, settings_of(process)->suppressions);
    struct leak_sums *sums = &process->last_sums;
    unsigned bucket = by ? LEAK_KINDS : loss->facts.kind;
    sums->bytes[bucket] += loss->facts.bytes;
    sums->blocks[bucket] += loss->facts.blocks;
    if (by) {
        hide(process, by, &loss->facts);
        loss->facts.is_quiet = 1;
    } else if (is_counted(process, loss) && in(settings_of(process)->error_kinds, loss)) {
        process->counted_losses++;
    }
}

// Losses of the search at the end, for other programs.
static void collect(struct process_findings *process, struct named_loss *loss, size_t index) {
    const struct search *search = &process->search;
    bool fails = in(settings_of(process)->error_kinds, loss);
    if (!outputs_results(process->run->request) || process->muted || !search->facts.at_end ||
        !is_counted(process, loss) || !(fails || in(settings_of(process)->show_kinds, loss)))
        return;
    struct naming naming = findings_naming(process);
    named_loss_name_holder(loss, &naming);
    const struct result *result =
        results_add_loss(outputs_results(process->run->request), loss, index, search->facts.losses,
                         naming.options, process->pid, fails);
    process->known_leaks += fails && result->known;
}

void leaks_add(struct process_findings *process, const struct wire_loss *losses, size_t size) {
    struct search *search = &process->search;
    struct naming naming = findings_naming(process);
    const char *at = (const char *)losses, *end = at + size;
    while (at < end && search->count < search->facts.losses) {
        const struct wire_loss *message = (const struct wire_loss *)at;
        struct named_loss *loss = vector_push(search->losses, search->count);
        named_loss_make(loss, &naming, &message->loss, message->pcs, message->pc_count);
        judge(process, loss);
        collect(process, loss, search->count);
        at += sizeof *message + message->pc_count * sizeof message->pcs[0];
    }
}

// ---- showing -----------------------------------------------------------------------------------

static void show_loss(struct process_findings *process, size_t index) {
    struct search *search = &process->search;
    struct named_loss *loss = &search->losses[index];
    struct naming naming = findings_naming(process);
    struct text text = {0};
    struct text raw = {0};
    named_loss_name_holder(loss, &naming);
    if (process->run->request->xml.wanted) {
        xml_loss(&text, loss, process->next_unique++, index + 1, search->count,
                 search->facts.is_delta, naming.options,
                 settings_of(process)->generate == GENERATE_ALL);
        if (!process->muted)
            xml_put(process->run->request, process->pid, &text);
    } else {
        loss_text(loss, index + 1, search->count, search->facts.is_delta, naming.options, &text);
        loss_suppression(loss, &raw);
        // The search at the end goes by the first thread, whoever ends the process.
        findings_show(process, search->facts.at_end ? 1 : process->last_thread, "", text.bytes,
                      raw.bytes);
    }
    text_free(&text);
    text_free(&raw);
}

// What the search itself asks for, or else the options.
static unsigned kinds_to_show(const struct process_findings *process) {
    unsigned kinds = process->search.facts.kinds;
    return kinds ? kinds : settings_of(process)->show_kinds;
}

static void show_sums(struct process_findings *process) {
    const struct search *search = &process->search;
    const uint64_t *blocks = process->last_sums.blocks;
    struct text text = {0};
    leak_sums_text(&process->last_sums, search->facts.is_delta ? &search->old_sums : NULL, &text);
    if (!search->facts.full && (blocks[LEAK_DEFINITE] || blocks[LEAK_INDIRECT] ||
                                blocks[LEAK_POSSIBLE] || blocks[LEAK_REACHABLE]))
        text_string(&text, search->facts.by_command
                               ? "\nTo see details of leaked memory, give 'full' arg to leak_check"
                               : "\nRerun with --leak-check=full to see details of leaked memory");
    if (search->facts.full && blocks[LEAK_REACHABLE] &&
        !(kinds_to_show(process) & 1u << LEAK_REACHABLE))
        text_format(&text,
                    "\nReachable blocks (those to which a pointer was found) are not shown.\n"
                    "To see them, %s",
                    search->facts.by_command ? "add 'reachable any' args to leak_check"
                                             : "rerun with: --leak-check=full "
                                               "--show-leak-kinds=all");
    findings_say(process, text.bytes);
    findings_say(process, "");
    text_free(&text);
}

static bool is_shown(const struct process_findings *process, const struct named_loss *loss) {
    return is_counted(process, loss) && in(kinds_to_show(process), loss);
}

bool leaks_stop(const struct process_findings *process) {
    const struct search *search = &process->search;
    bool is_tree = settings_of(process)->xtree_leak && search->facts.at_end;
    bool stops = false;
    for (size_t i = 0; !stops && !is_tree && search->done && i < search->count; i++)
        stops = settings_of(process)->exit_on_first && is_shown(process, &search->losses[i]);
    return stops;
}

// The number of losses, the largest last, that a limit leaves out.
static size_t count_passed_over(const struct process_findings *process) {
    const struct search *search = &process->search;
    size_t shown = 0;
    for (size_t i = 0; i < search->count; i++)
        shown += is_shown(process, &search->losses[i]);
    return search->facts.limit && shown > search->facts.limit ? shown - search->facts.limit : 0;
}

void leaks_show(struct process_findings *process) {
    const struct search *search = &process->search;
    bool says_sums = log_shows(process->run->log, 0) && !process->run->request->xml.wanted;
    if (!search->count && !search->facts.is_delta) {
        if (says_sums) {
            findings_say(process, "All heap blocks were freed -- no leaks are possible");
            findings_say(process, "");
        }
        return;
    }
    bool is_tree = settings_of(process)->xtree_leak && search->facts.at_end;
    if (is_tree)
        leaks_write_xtree(process);
    size_t passed_over = count_passed_over(process);
    for (size_t i = 0; !is_tree && i < search->count; i++) {
        if (!is_shown(process, &search->losses[i]) || (passed_over && passed_over--))
            continue;
        show_loss(process, i);
        if (settings_of(process)->exit_on_first) {
            findings_stop(process);
            return;
        }
    }
    if (says_sums)
        show_sums(process);
}

void leaks_check(struct process_findings *process) {
    const struct search *search = &process->search;
    const struct supervisor_request *request = process->run->request;
    const struct leak_sums *sums = &process->last_sums;
    struct budget_numbers numbers = {0};
    bool is_searched = search->done && search->facts.at_end;
    budget_number(&numbers, BUDGET_ALLOCATIONS, process->heap.allocations);
    if (is_searched || (process->ended && !process->heap.live_blocks))
        budget_number(&numbers, BUDGET_LEAKED,
                      is_searched ? sums->bytes[LEAK_DEFINITE] + sums->bytes[LEAK_INDIRECT] +
                                        sums->bytes[LEAK_POSSIBLE]
                                  : 0);
    if (process->muted)
        return;
    budgets_check(request, process->pid, &numbers);
    if (!diagnosis_wanted(request, false))
        return;
    struct diagnoses diagnoses = {0};
    for (size_t i = 0; is_searched && i < search->count; i++)
        if (is_counted(process, &search->losses[i]))
            diagnose_loss(&search->losses[i], &diagnoses);
    diagnoses_sort(&diagnoses);
    diagnosis_tell(request, process->pid, &diagnoses, false);
}
