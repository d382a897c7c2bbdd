#include "base/vector.h"
#include "report/callgrind/annotate_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { RULE = 80, COLUMN_LEAST = 8 };

// ---- numbers -----------------------------------------------------------------------------------

void annotate_rule(FILE *out) {
    for (int i = 0; i < RULE; i++)
        fputc('-', out);
    fputc('\n', out);
}

static void cell(const struct annotate_view *view, unsigned column, uint64_t value, bool percent) {
    struct text text = {0};
    if (value || percent)
        text_commas(&text, value);
    else
        text_char(&text, '.');
    if (percent && view->options->percents) {
        uint64_t total = view->profile->totals[view->options->show[column]];
        text_format(&text, " (%5.2f%%)", total ? 100.0 * (double)value / (double)total : 0);
    } else if (view->options->percents) {
        text_string(&text, "         ");
    }
    fprintf(view->out, "%*s  ", view->widths[column], text.bytes);
    text_free(&text);
}

void annotate_cells(const struct annotate_view *view, const uint64_t *values) {
    for (unsigned i = 0; i < view->options->show_count; i++) {
        uint64_t value = values[view->options->show[i]];
        cell(view, i, value, value != 0);
    }
}

void annotate_headings(const struct annotate_view *view, const char *rest) {
    for (unsigned i = 0; i < view->options->show_count; i++)
        fprintf(view->out, "%*s  ", view->widths[i], view->profile->events[view->options->show[i]]);
    fprintf(view->out, "%s\n", rest);
}

static void choose_widths(struct annotate_view *view) {
    for (unsigned i = 0; i < view->options->show_count; i++) {
        struct text text = {0};
        text_commas(&text, view->profile->totals[view->options->show[i]]);
        int width = (int)text.size + (view->options->percents ? 10 : 0);
        int name = (int)strlen(view->profile->events[view->options->show[i]]);
        view->widths[i] = width > name ? width : name;
        if (view->widths[i] < COLUMN_LEAST)
            view->widths[i] = COLUMN_LEAST;
        text_free(&text);
    }
}

// ---- functions ---------------------------------------------------------------------------------

// A name may hold anything.
void annotate_name(FILE *out, const char *name) {
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, out);
}

void annotate_function_name(const struct annotate_view *view, uint32_t number) {
    const struct cost_inclusive *inclusive = view->inclusive;
    if (number >= view->profile->function_count) {
        uint32_t cycle = number - (uint32_t)view->profile->function_count;
        fprintf(view->out, "<cycle %" PRIu32 "> of %" PRIu32 " functions", cycle + 1,
                inclusive->sizes[cycle]);
        return;
    }
    const struct cost_function *function = &view->profile->functions[number];
    annotate_name(view->out, function->file);
    fputc(':', view->out);
    annotate_name(view->out, function->name);
    bool shows_calls = view->options->inclusive || view->options->tree != TREE_NONE;
    if (shows_calls && inclusive->cycle_of[number])
        fprintf(view->out, " <cycle %" PRIu32 ">", inclusive->cycle_of[number]);
    if (*function->object) {
        fputs(" [", view->out);
        annotate_name(view->out, function->object);
        fputc(']', view->out);
    }
}

void annotate_call(const struct annotate_view *view, const struct cost_call *call,
                   const uint64_t *values, const char *mark, uint32_t end) {
    static const uint64_t none[COST_EVENTS];
    bool is_within = cost_is_within(view->inclusive, call->caller, call->callee);
    annotate_cells(view, is_within ? none : values);
    fputs(mark, view->out);
    annotate_function_name(view, end);
    fprintf(view->out, " (%" PRIu64 "x%s)\n", call->count, is_within ? ", recursion" : "");
}

static int by_weight(const void *left, const void *right) {
    const struct annotate_row *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight < b->weight ? 1 : -1;
    return a->function < b->function ? -1 : a->function > b->function;
}

static void make_rows(struct annotate_view *view) {
    const struct cost_profile *profile = view->profile;
    uint32_t functions = (uint32_t)profile->function_count;
    uint32_t cycles = view->options->inclusive ? view->inclusive->cycle_count : 0;
    view->rows = base_allocate(((size_t)functions + cycles + 1) * sizeof *view->rows);
    for (uint32_t i = 0; i < functions + cycles; i++) {
        const uint64_t *values =
            i >= functions             ? cost_inclusive_cycle(view->inclusive, i - functions + 1)
            : view->options->inclusive ? cost_inclusive_of(view->inclusive, i)
                                       : cost_values(profile, profile->functions[i].own);
        view->rows[i] = (struct annotate_row){i, values[view->options->sort], values};
    }
    view->row_count = functions + cycles;
    qsort(view->rows, view->row_count, sizeof *view->rows, by_weight);
    // Own costs add up to the total; inclusive ones stand for themselves.
    double total = (double)profile->totals[view->options->sort], sum = 0;
    while (view->shown < view->row_count && view->rows[view->shown].weight) {
        double weight = (double)view->rows[view->shown].weight;
        if (view->options->inclusive ? weight < total * (100 - view->options->threshold) / 100
                                     : sum >= total * view->options->threshold / 100)
            break;
        sum += weight;
        view->shown++;
    }
}

// Calls of one pair of functions from several lines, added up.
struct pair {
    struct cost_call call;
    uint32_t other;
    uint64_t values[COST_EVENTS];
};

static int by_pair_weight(const void *left, const void *right, void *sort) {
    const struct pair *a = left, *b = right;
    uint64_t x = a->values[*(unsigned *)sort], y = b->values[*(unsigned *)sort];
    return x != y ? (x < y ? 1 : -1) : (a->other > b->other) - (a->other < b->other);
}

// Whether a row stands for the function: it is its own, or that of its cycle.
static bool is_of(const struct annotate_view *view, uint32_t row, uint32_t function) {
    size_t functions = view->profile->function_count;
    return row < functions ? function == row
                           : view->inclusive->cycle_of[function] == row - functions + 1;
}

static void print_pairs(const struct annotate_view *view, uint32_t row, bool callers) {
    const struct cost_profile *profile = view->profile;
    struct pair *pairs = NULL;
    size_t count = 0;
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (!is_of(view, row, callers ? call->callee : call->caller))
            continue;
        // A cycle's row tells who calls it from outside, and whom it calls there.
        if (row >= profile->function_count &&
            is_of(view, row, callers ? call->caller : call->callee))
            continue;
        uint32_t other = callers ? call->caller : call->callee;
        size_t at = 0;
        while (at < count && pairs[at].other != other)
            at++;
        if (at == count)
            *vector_push(pairs, count) = (struct pair){
                .call = {.caller = call->caller, .callee = call->callee}, .other = other};
        pairs[at].call.count += call->count;
        for (unsigned e = 0; e < profile->event_count; e++)
            pairs[at].values[e] += cost_values(profile, call->inclusive)[e];
    }
    unsigned sort = view->options->sort;
    if (count)
        qsort_r(pairs, count, sizeof *pairs, by_pair_weight, &sort);
    for (size_t i = 0; i < count; i++) {
        const struct pair *pair = &pairs[i];
        annotate_call(view, &pair->call, pair->values, callers ? "  < " : "  > ", pair->other);
    }
    free(pairs);
}

static void print_functions(const struct annotate_view *view) {
    enum annotate_tree tree = view->options->tree;
    annotate_rule(view->out);
    annotate_headings(view, "file:function");
    annotate_rule(view->out);
    for (size_t i = 0; i < view->shown; i++) {
        uint32_t function = view->rows[i].function;
        if (tree == TREE_CALLERS || tree == TREE_BOTH)
            print_pairs(view, function, true);
        annotate_cells(view, view->rows[i].values);
        fputs(tree != TREE_NONE ? "  * " : "", view->out);
        annotate_function_name(view, function);
        fputc('\n', view->out);
        if (tree == TREE_CALLEES || tree == TREE_BOTH)
            print_pairs(view, function, false);
        if (tree != TREE_NONE)
            fputc('\n', view->out);
    }
    if (tree == TREE_NONE)
        fputc('\n', view->out);
}

static void print_head(const struct annotate_view *view) {
    static const char *const caches[] = {"I1 cache:", "D1 cache:", "LL cache:"};
    const struct cost_profile *profile = view->profile;
    const struct annotate_options *options = view->options;
    annotate_rule(view->out);
    for (unsigned i = 0; i < 3; i++)
        if (profile->caches[i])
            fprintf(view->out, "%-18s%s\n", caches[i], profile->caches[i]);
    if (profile->command) {
        fprintf(view->out, "%-18s", "Command:");
        annotate_name(view->out, profile->command);
        fputc('\n', view->out);
    }
    fprintf(view->out, "%-18s", "Events:");
    for (unsigned i = 0; i < profile->event_count; i++)
        fprintf(view->out, "%s%s", i ? " " : "", profile->events[i]);
    fprintf(view->out, "\n%-18s%s, %s costs, until they make up %g %%\n",
            "Functions by:", profile->events[options->sort],
            options->inclusive ? "inclusive" : "own", options->threshold);
    annotate_rule(view->out);
    annotate_headings(view, "");
    annotate_rule(view->out);
    annotate_cells(view, profile->totals);
    fputs("PROGRAM TOTALS\n\n", view->out);
}

// ---- sources -----------------------------------------------------------------------------------

struct source_line {
    uint64_t values[COST_EVENTS];
    bool has_costs;
};

FILE *annotate_open_source(const struct annotate_view *view, const char *path) {
    FILE *file = fopen(path, "r");
    for (size_t i = 0; !file && i < view->options->directory_count; i++) {
        const char *rest = path;
        // The path itself below the directory, or any end of it.
        while (!file && rest) {
            struct text full = {0};
            text_format(&full, "%s/%s", view->options->directories[i], rest);
            file = fopen(full.bytes, "r");
            text_free(&full);
            rest = strchr(rest, '/');
            rest = rest ? rest + 1 : NULL;
        }
    }
    return file;
}

static void print_calls_at(const struct annotate_view *view, const char *path, uint32_t line) {
    const struct cost_profile *profile = view->profile;
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->file != path || call->line != line)
            continue;
        annotate_call(view, call, cost_values(profile, call->inclusive), "=> ", call->callee);
    }
}

static bool is_near(const struct source_line *lines, size_t count, size_t line, unsigned context) {
    size_t first = line > context ? line - context : 1;
    for (size_t i = first; i <= line + context && i < count; i++)
        if (lines[i].has_costs)
            return true;
    return false;
}

static void print_lines(const struct annotate_view *view, const char *path, FILE *file,
                        const struct source_line *lines, size_t count) {
    static const uint64_t none[COST_EVENTS];
    char *text = NULL;
    size_t room = 0;
    bool skipped = false;
    ssize_t size;
    for (size_t line = 1; (size = getline(&text, &room, file)) >= 0; line++) {
        if (size && text[size - 1] == '\n')
            text[size - 1] = 0;
        if (!is_near(lines, count, line, view->options->context)) {
            skipped = true;
            continue;
        }
        if (skipped)
            fprintf(view->out, "-- line %zu %s\n", line,
                    "----------------------------------------");
        skipped = false;
        annotate_cells(view, line < count ? lines[line].values : none);
        annotate_name(view->out, text);
        fputc('\n', view->out);
        if (line < count && lines[line].has_costs)
            print_calls_at(view, path, (uint32_t)line);
    }
    free(text);
}

static void print_source(const struct annotate_view *view, const char *path) {
    const struct cost_profile *profile = view->profile;
    size_t count = 1;
    for (size_t i = 0; i < profile->line_count; i++)
        if (profile->lines[i].file == path && profile->lines[i].line >= count &&
            profile->lines[i].line < 10000000)
            count = profile->lines[i].line + 1;
    struct source_line *lines = base_allocate(count * sizeof *lines);
    memset(lines, 0, count * sizeof *lines);
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        if (line->file != path || line->line >= count || !line->line)
            continue;
        lines[line->line].has_costs = true;
        for (unsigned e = 0; e < profile->event_count; e++)
            lines[line->line].values[e] += cost_values(profile, line->own)[e];
    }
    FILE *file = annotate_open_source(view, path);
    annotate_rule(view->out);
    fputs(file ? "-- Source: " : "-- No source found: ", view->out);
    annotate_name(view->out, path);
    fputc('\n', view->out);
    annotate_rule(view->out);
    if (file) {
        annotate_headings(view, "");
        print_lines(view, path, file, lines, count);
        fclose(file);
    }
    fputc('\n', view->out);
    free(lines);
}

// The files of the functions shown, each once.
static void print_sources(const struct annotate_view *view) {
    const struct cost_function *functions = view->profile->functions;
    for (size_t i = 0; i < view->shown; i++) {
        if (view->rows[i].function >= view->profile->function_count)
            continue;
        const char *path = functions[view->rows[i].function].file;
        bool before = strcmp(path, "???") == 0;
        for (size_t j = 0; j < i && !before; j++)
            before = view->rows[j].function < view->profile->function_count &&
                     functions[view->rows[j].function].file == path;
        if (!before)
            print_source(view, path);
    }
}

void annotate(FILE *out, const struct cost_profile *profile,
              const struct annotate_options *options) {
    struct annotate_view view = {.out = out, .profile = profile, .options = options};
    choose_widths(&view);
    view.inclusive = cost_inclusive(profile);
    make_rows(&view);
    print_head(&view);
    print_functions(&view);
    if (options->sources)
        print_sources(&view);
    if (options->assembly)
        annotate_assembly(&view);
    cost_inclusive_free(view.inclusive);
    free(view.rows);
}
