// callgrind.out and cachegrind.out files as documents.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "profile/costs/derived.h"
#include "profile/costs/inclusive.h"
#include "report/callgrind/cost_tree.h"
#include "view/documents/document.h"

// Cachegrind's files begin so, or with a comment of the caches; callgrind's never do.
static bool has_calls(const char *start, size_t size) {
    char text[4097];
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, start, size);
    text[size] = 0;
    return strstr(text, "positions:") || strstr(text, "# callgrind format") ||
           strstr(text, "creator: callgrind") || strstr(text, "calls=");
}

static bool is_callgrind(const char *start, size_t size) {
    return costs_is_one(start, size) && has_calls(start, size);
}

static void add_first_lines(struct document *document) {
    const struct cost_profile *profile = document->costs;
    size_t size = (profile->function_count + 1) * sizeof *document->first_lines;
    document->first_lines = base_allocate(size);
    memset(document->first_lines, 0, size);
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        uint32_t *first = &document->first_lines[line->function];
        if (line->line && line->file == profile->functions[line->function].file &&
            (!*first || line->line < *first))
            *first = line->line;
    }
}

// A function without a symbol has its address as its name, in the object's own tables. Beside
// others that says nothing: it gets the object's name, too.
static void name_functions(struct cost_profile *profile) {
    struct text name = {0};
    for (size_t i = 0; i < profile->function_count; i++) {
        struct cost_function *function = &profile->functions[i];
        bool is_address =
            strncmp(function->name, "0x", 2) == 0 &&
            strspn(function->name + 2, "0123456789abcdef") + 2 == strlen(function->name);
        if (!is_address || !*function->object || strcmp(function->object, "???") == 0)
            continue;
        text_clear(&name);
        text_format(&name, "%s+0x%llx", heap_file_base(function->object),
                    strtoull(function->name, NULL, 16));
        function->name = costs_string(profile, name.bytes, name.size);
    }
    text_free(&name);
}

static char *read_costs(struct document *document, int fd) {
    int copy = dup(fd);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in)
        return base_copy(strerror(errno));
    document->costs = costs_new();
    char *problem = costs_read(document->costs, in);
    fclose(in);
    if (problem)
        return problem;
    document->command = document->costs->command;
    document->event_count = document->costs->event_count;
    name_functions(document->costs);
    costs_derive(document->costs);
    for (unsigned i = 0; i < document->costs->event_count; i++) {
        const char *help =
            i < document->event_count ? NULL : costs_derived_help(document->costs->events[i]);
        document->metrics[document->metric_count++] = (struct document_metric){
            .name = document->costs->events[i],
            .help = help ? help : document->costs->events[i],
            .unit = document->costs->events[i],
            .total = document->costs->totals[i],
        };
    }
    document->inclusive = cost_inclusive(document->costs);
    add_first_lines(document);
    return NULL;
}

static void free_costs(struct document *document) {
    if (document->costs)
        costs_free(document->costs);
    cost_inclusive_free(document->inclusive);
    free(document->first_lines);
    for (unsigned i = 0; i < document->formula_count; i++)
        free(document->formulas[i]);
}

// What was made of the costs before has room for fewer events.
static bool add_formula(struct document *document, const char *text) {
    if (document->formula_count == COST_EVENTS)
        return false;
    char *formula = base_copy(text);
    if (!costs_add_formula(document->costs, formula)) {
        free(formula);
        return false;
    }
    document->formulas[document->formula_count++] = formula;
    cost_inclusive_free(document->inclusive);
    document->inclusive = cost_inclusive(document->costs);
    document->metrics[document->metric_count++] = (struct document_metric){
        .name = formula,
        .help = formula,
        .unit = formula,
        .total = document->costs->totals[document->costs->event_count - 1],
    };
    return true;
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    return cost_tree(document->costs, metric);
}

static bool tells_libraries(const struct document *document) {
    const struct cost_profile *profile = document->costs;
    for (size_t i = 0; i < profile->function_count; i++)
        if (*profile->functions[i].object && strcmp(profile->functions[i].object, "???") != 0)
            return true;
    return false;
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    const struct cost_profile *profile = document->costs;
    for (unsigned i = 0; i < document->event_count; i++)
        document_fact(sink, profile->events[i], profile->totals[i], "");
    document_fact(sink, "functions", profile->function_count, "");
    if (profile->has_calls)
        document_fact(sink, "calls between functions", profile->call_count, "");
    if (document->inclusive->cycle_count)
        document_fact(sink, "cycles of functions", document->inclusive->cycle_count, "");
    if (profile->creator)
        document_fact_text(sink, "written by", profile->creator);
    static const char *const caches[] = {"I1 cache", "D1 cache", "LL cache"};
    for (size_t i = 0; i < 3; i++)
        if (profile->caches[i])
            document_fact_text(sink, caches[i], profile->caches[i]);
}

static const char *const call_views[] = {"calls", "source", NULL};
static const char *const line_views[] = {"source", NULL};

const struct document_format document_callgrind = {
    .name = "callgrind",
    .help = "a callgrind.out",
    .is_one = is_callgrind,
    .read = read_costs,
    .free = free_costs,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
    .views = call_views,
    .add_metric = add_formula,
};

const struct document_format document_cachegrind = {
    .name = "cachegrind",
    .help = "a cachegrind.out",
    .is_one = costs_is_one,
    .read = read_costs,
    .free = free_costs,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
    .views = line_views,
    .add_metric = add_formula,
};
