// A search for leaks, as the target made it: suppressing, showing, summing up.
#include <stdlib.h>
#include <string.h>

#include "report/findings/text.h"
#include "report/findings/xml.h"
#include "tools/memcheck/supervisor/parts.h"

// More are announced only by a target that is broken: they come as they come.
enum { MOST_ANNOUNCED = 1 << 20 };

void leaks_drop(struct errors *errors) {
    struct search *search = &errors->search;
    for (size_t i = 0; i < search->count; i++)
        loss_free(&search->losses[i]);
    free(search->losses);
    *search = (struct search){0};
}

void leaks_begin(struct errors *errors, const struct wire_leaks *message) {
    leaks_drop(errors);
    errors->search.active = true;
    errors->search.facts = *message;
    errors->search.old_sums = errors->last_sums;
    errors->last_sums = (struct leak_sums){0};
    size_t room = message->losses < MOST_ANNOUNCED ? message->losses : MOST_ANNOUNCED;
    errors->search.losses = base_allocate(room * sizeof *errors->search.losses);
}

static bool in(unsigned kinds, const struct loss *loss) {
    return kinds & 1u << loss->facts.kind;
}

static bool is_counted(const struct errors *errors, const struct loss *loss) {
    return errors->search.facts.full && !loss->facts.is_quiet;
}

static void hide(struct errors *errors, struct suppression *by, const struct wire_loss *facts) {
    errors->hidden =
        base_reallocate(errors->hidden, (errors->hidden_count + 1) * sizeof *errors->hidden);
    errors->hidden[errors->hidden_count++] = (struct hidden_loss){
        .by = by, .bytes = facts->bytes + facts->indirect_bytes, .blocks = facts->blocks};
}

// Takes a loss into the sums. A suppressed one is not shown.
static void judge(struct errors *errors, struct loss *loss) {
    struct suppression_subject subject = {
        .kind = "Leak", .leak_kind = 1u << loss->facts.kind, .stack = &loss->stack};
    struct suppression *by = suppressions_match(FINDINGS_SETTINGS->suppressions, &subject);
    struct leak_sums *sums = &errors->last_sums;
    unsigned bucket = by ? LOSS_KINDS : loss->facts.kind;
    sums->bytes[bucket] += loss->facts.bytes;
    sums->blocks[bucket] += loss->facts.blocks;
    if (by) {
        hide(errors, by, &loss->facts);
        loss->facts.is_quiet = 1;
    } else if (is_counted(errors, loss) && in(FINDINGS_SETTINGS->error_kinds, loss)) {
        errors->leak_errors++;
    }
}

// Losses of the search at the end, for other programs.
static void collect(struct errors *errors, struct loss *loss, size_t index) {
    const struct search *search = &errors->search;
    bool fails = in(FINDINGS_SETTINGS->error_kinds, loss);
    if (!outputs_results() || errors->muted || !search->facts.at_end || !is_counted(errors, loss) ||
        !(fails || in(FINDINGS_SETTINGS->show_kinds, loss)))
        return;
    struct naming naming = findings_naming(errors);
    loss_name_holder(loss, &naming);
    const struct result *result = results_add_loss(
        outputs_results(), loss, index, search->facts.losses, naming.options, errors->pid, fails);
    errors->known_leaks += fails && result->known;
}

void leaks_add(struct errors *errors, const struct wire_loss *losses, size_t size) {
    struct search *search = &errors->search;
    struct naming naming = findings_naming(errors);
    const char *at = (const char *)losses, *end = at + size;
    while (at < end && search->count < search->facts.losses) {
        const struct wire_loss *facts = (const struct wire_loss *)at;
        if (search->count >= MOST_ANNOUNCED)
            search->losses =
                base_reallocate(search->losses, (search->count + 1) * sizeof *search->losses);
        struct loss *loss = &search->losses[search->count++];
        loss_make(loss, &naming, facts);
        judge(errors, loss);
        collect(errors, loss, search->count);
        at += sizeof *facts + facts->pc_count * sizeof facts->pcs[0];
    }
}

// ---- showing -----------------------------------------------------------------------------------

static void show_loss(struct errors *errors, size_t index) {
    struct search *search = &errors->search;
    struct loss *loss = &search->losses[index];
    struct naming naming = findings_naming(errors);
    struct text text = {0};
    struct text raw = {0};
    loss_name_holder(loss, &naming);
    if (findings.request->xml.wanted) {
        xml_loss(&text, loss, errors->next_unique++, index + 1, search->count,
                 search->facts.is_delta, naming.options,
                 FINDINGS_SETTINGS->generate == GENERATE_ALL);
        if (!errors->muted)
            xml_put(errors->pid, &text);
    } else {
        loss_text(loss, index + 1, search->count, search->facts.is_delta, naming.options, &text);
        loss_suppression(loss, &raw);
        // The search at the end goes by the first thread, whoever ends the process.
        findings_show(errors, search->facts.at_end ? 1 : errors->last_thread, "", text.bytes,
                      raw.bytes);
    }
    text_free(&text);
    text_free(&raw);
}

static void add_sum(struct text *text, const char *label, const struct errors *errors,
                    unsigned bucket) {
    const struct search *search = &errors->search;
    const struct leak_sums *now = &errors->last_sums, *before = &search->old_sums;
    bool is_delta = search->facts.is_delta;
    text_format(text, "\n%s: ", label);
    text_commas(text, now->bytes[bucket]);
    text_delta(text, now->bytes[bucket], before->bytes[bucket], is_delta);
    text_string(text, " bytes in ");
    text_commas(text, now->blocks[bucket]);
    text_delta(text, now->blocks[bucket], before->blocks[bucket], is_delta);
    text_string(text, " blocks");
}

static void add_heuristics(struct text *text, const struct wire_leaks *facts) {
    static const char *const names[LEAK_HEURISTICS] = {"stdstring", "length64", "newarray",
                                                       "multipleinheritance"};
    bool any = false;
    for (unsigned i = 0; i < LEAK_HEURISTICS; i++) {
        if (!facts->heuristic_blocks[i])
            continue;
        if (!any)
            text_string(text, "\n                      of which reachable via heuristic:");
        any = true;
        text_format(text, "\n                        %-19s: ", names[i]);
        text_commas(text, facts->heuristic_bytes[i]);
        text_string(text, " bytes in ");
        text_commas(text, facts->heuristic_blocks[i]);
        text_string(text, " blocks");
    }
}

static void show_sums(struct errors *errors) {
    const struct search *search = &errors->search;
    const uint64_t *blocks = errors->last_sums.blocks;
    struct text text = {0};
    text_string(&text, "LEAK SUMMARY:");
    add_sum(&text, "   definitely lost", errors, LOSS_DEFINITE);
    add_sum(&text, "   indirectly lost", errors, LOSS_INDIRECT);
    add_sum(&text, "     possibly lost", errors, LOSS_POSSIBLE);
    add_sum(&text, "   still reachable", errors, LOSS_REACHABLE);
    add_heuristics(&text, &search->facts);
    add_sum(&text, "        suppressed", errors, LOSS_KINDS);
    if (!search->facts.full && (blocks[LOSS_DEFINITE] || blocks[LOSS_INDIRECT] ||
                                blocks[LOSS_POSSIBLE] || blocks[LOSS_REACHABLE]))
        text_string(&text, "\nRerun with --leak-check=full to see details of leaked memory");
    if (search->facts.full && blocks[LOSS_REACHABLE] &&
        !(FINDINGS_SETTINGS->show_kinds & 1u << LOSS_REACHABLE))
        text_string(&text,
                    "\nReachable blocks (those to which a pointer was found) are not shown.\n"
                    "To see them, rerun with: --leak-check=full --show-leak-kinds=all");
    findings_say(errors, text.bytes);
    findings_say(errors, "");
    text_free(&text);
}

void leaks_show(struct errors *errors) {
    const struct search *search = &errors->search;
    bool says_sums = log_shows(0) && !findings.request->xml.wanted;
    if (!search->count && !search->facts.is_delta) {
        if (says_sums) {
            findings_say(errors, "All heap blocks were freed -- no leaks are possible");
            findings_say(errors, "");
        }
        return;
    }
    bool is_tree = FINDINGS_SETTINGS->xtree_leak && search->facts.at_end;
    if (is_tree)
        leaks_write_xtree(errors);
    for (size_t i = 0; !is_tree && i < search->count; i++) {
        const struct loss *loss = &search->losses[i];
        if (is_counted(errors, loss) && in(FINDINGS_SETTINGS->show_kinds, loss))
            show_loss(errors, i);
    }
    if (says_sums)
        show_sums(errors);
}

void leaks_check(struct errors *errors) {
    const struct search *search = &errors->search;
    const struct supervisor_request *request = findings.request;
    const struct leak_sums *sums = &errors->last_sums;
    struct budget_numbers numbers = {0};
    bool is_searched = search->done && search->facts.at_end;
    budget_number(&numbers, BUDGET_ALLOCATIONS, errors->heap.allocations);
    if (is_searched || (errors->ended && !errors->heap.live_blocks))
        budget_number(&numbers, BUDGET_LEAKED,
                      is_searched ? sums->bytes[LOSS_DEFINITE] + sums->bytes[LOSS_INDIRECT] +
                                        sums->bytes[LOSS_POSSIBLE]
                                  : 0);
    if (errors->muted)
        return;
    budgets_check(&request->budgets, errors->pid, &numbers);
    if (!diagnosis_wanted(request, false))
        return;
    struct diagnoses diagnoses = {0};
    for (size_t i = 0; is_searched && i < search->count; i++)
        if (is_counted(errors, &search->losses[i]))
            diagnose_loss(&search->losses[i], &diagnoses);
    diagnoses_sort(&diagnoses);
    diagnosis_tell(request, errors->pid, &diagnoses, false);
}
