#include "report/heap/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/heap/rows.h"

struct change {
    const char *folded;
    uint64_t before, after;
};

static uint64_t size_of(const struct change *change) {
    return change->after > change->before ? change->after - change->before
                                          : change->before - change->after;
}

// Those that grew come first, the largest change in front; then those that shrank, likewise. Names
// decide between equals.
static int by_growth(const void *left, const void *right) {
    const struct change *a = left, *b = right;
    bool a_grew = a->after > a->before, b_grew = b->after > b->before;
    if (a_grew != b_grew)
        return a_grew ? -1 : 1;
    if (size_of(a) != size_of(b))
        return size_of(a) > size_of(b) ? -1 : 1;
    return strcmp(a->folded, b->folded);
}

// Both lists are sorted by name; what did not change is left out.
static struct change *changes_of(const struct rows_line *before, size_t before_count,
                                 const struct rows_line *after, size_t after_count, size_t *count) {
    struct change *changes = base_allocate((before_count + after_count + 1) * sizeof *changes);
    size_t i = 0, j = 0;
    *count = 0;
    while (i < before_count || j < after_count) {
        int order = i == before_count  ? 1
                    : j == after_count ? -1
                                       : strcmp(before[i].folded, after[j].folded);
        struct change change = {order <= 0 ? before[i].folded : after[j].folded, 0, 0};
        if (order <= 0)
            change.before = before[i++].value;
        if (order >= 0)
            change.after = after[j++].value;
        if (change.before != change.after)
            changes[(*count)++] = change;
    }
    qsort(changes, *count, sizeof *changes, by_growth);
    return changes;
}

static void write_change(FILE *out, const struct change *change, const char *unit) {
    char size[32], before[32], after[32];
    fprintf(out, "%c%s %s (%s -> %s)\n", change->after >= change->before ? '+' : '-',
            text_number(size, size_of(change)), unit, text_number(before, change->before),
            text_number(after, change->after));
}

// The innermost function first, as in every other stack that is shown.
static void write_stack(FILE *out, const char *folded) {
    const char *end = folded + strlen(folded);
    const char *word = "at";
    while (end >= folded) {
        const char *start = end;
        while (start > folded && start[-1] != ';')
            start--;
        fprintf(out, "   %s %.*s\n", word, (int)(end - start), start);
        word = "by";
        end = start - 1;
    }
}

static void write_list(FILE *out, const char *title, const struct change *changes, size_t count,
                       const struct heap_diff_options *options) {
    if (!count)
        return;
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < count && i < options->top; i++) {
        write_change(out, &changes[i], options->weight->unit);
        write_stack(out, changes[i].folded);
    }
    uint64_t rest = 0;
    for (size_t i = options->top; i < count; i++)
        rest += size_of(&changes[i]);
    char stacks[32], size[32];
    if (count > options->top)
        fprintf(out, "and %s more stacks with %s %s\n", text_number(stacks, count - options->top),
                text_number(size, rest), options->weight->unit);
}

static void write_head(FILE *out, const char *title, const struct heap_file *file) {
    const char *command = file->info.process.command;
    fprintf(out, "%s", title);
    stack_text_escaped(out, command ? command : "(unknown)");
    fputc('\n', out);
}

static void write_total(FILE *out, const struct heap_file *before, const struct heap_file *after,
                        const struct heap_weight *weight) {
    fprintf(out, "%s: ", weight->help);
    write_change(out,
                 &(struct change){.before = heap_weight_of(weight, &before->summary.total),
                                  .after = heap_weight_of(weight, &after->summary.total)},
                 weight->unit);
}

size_t heap_diff_lines(FILE *out, const struct rows_line *before, size_t before_count,
                       const struct rows_line *after, size_t after_count,
                       const struct heap_diff_options *options, const char *of) {
    size_t count, grown = 0;
    struct change *changes = changes_of(before, before_count, after, after_count, &count);
    while (grown < count && changes[grown].after > changes[grown].before)
        grown++;
    char title[2][64];
    snprintf(title[0], sizeof title[0], "Grown%s:", of);
    snprintf(title[1], sizeof title[1], "Shrunk%s:", of);
    write_list(out, title[0], changes, grown, options);
    write_list(out, title[1], changes + grown, count - grown, options);
    free(changes);
    return count;
}

static size_t write_lists(FILE *out, const struct heap_file *before, const struct heap_file *after,
                          const struct heap_diff_options *options, const char *of) {
    size_t before_count, after_count;
    struct rows_line *old = rows_lines(before, options->weight, &before_count);
    struct rows_line *new = rows_lines(after, options->weight, &after_count);
    size_t count = heap_diff_lines(out, old, before_count, new, after_count, options, of);
    rows_lines_free(old, before_count);
    rows_lines_free(new, after_count);
    return count;
}

void heap_diff(FILE *out, const struct heap_file *before, const struct heap_file *after,
               const struct heap_diff_options *options) {
    write_head(out, "before:  ", before);
    write_head(out, "after:   ", after);
    write_total(out, before, after, options->weight);
    if (options->other)
        write_total(out, before, after, options->other);
    size_t count = write_lists(out, before, after, options, "");
    struct heap_diff_options other = {.weight = options->other, .top = options->top};
    if (!count && options->other)
        write_lists(out, before, after, &other, " at the peak");
}
