#include "report/shared/tree_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/shared/stack_text.h"

// Deeper than this a tree is not indented any more.
#define INDENT_MAX 60

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void write_name(FILE *out, const struct calltree_function *function) {
    stack_text_escaped(out, function->name);
    if (function->group[0] && function->name[0] != '[') {
        fputs(" (", out);
        stack_text_escaped(out, function->group);
        fputc(')', out);
    }
}

// ---- functions ----

static int by_self(const void *a, const void *b) {
    const struct calltree_function *first = *(struct calltree_function *const *)a;
    const struct calltree_function *second = *(struct calltree_function *const *)b;
    if (first->self != second->self)
        return first->self < second->self ? 1 : -1;
    if (first->total != second->total)
        return first->total < second->total ? 1 : -1;
    return strcmp(first->name, second->name);
}

void tree_text_functions(FILE *out, const struct calltree *tree, size_t top) {
    struct calltree_function **order = base_allocate((tree->function_count + 1) * sizeof *order);
    for (size_t i = 0; i < tree->function_count; i++)
        order[i] = &tree->functions[i];
    qsort(order, tree->function_count, sizeof *order, by_self);
    uint64_t all = tree->root.total;
    fprintf(out, "   self    total  function");
    for (size_t i = 0; i < tree->function_count && i < top && order[i]->self; i++) {
        fprintf(out, "\n%5.1f %%  %5.1f %%  ", percent(order[i]->self, all),
                percent(order[i]->total, all));
        write_name(out, order[i]);
    }
    free(order);
}

// ---- trees ----

#define NUMBERS 27 // columns before the name

struct writer {
    FILE *out;
    const struct calltree *tree;
    const struct paint *paint;
    uint64_t least;
};

static int by_total(const void *left, const void *right) {
    const struct calltree_node *a = *(struct calltree_node *const *)left;
    const struct calltree_node *b = *(struct calltree_node *const *)right;
    return a->total < b->total ? 1 : a->total > b->total ? -1 : 0;
}

// Numbers and indentation; the column in which the name begins.
static size_t write_numbers(const struct writer *writer, uint64_t value, unsigned depth) {
    char digits[32], bar[PAINT_BAR];
    double share = percent(value, writer->tree->root.total);
    size_t column = NUMBERS + (writer->paint ? PAINT_CELLS + 1 : 0);
    unsigned most = INDENT_MAX;
    if (writer->paint && writer->paint->width)
        most = writer->paint->width > column ? (writer->paint->width - (unsigned)column) / 4 : 0;
    unsigned indent = 2 * (depth < most ? depth : most);
    fprintf(writer->out, "%s%6.2f %% %16s  %*s", paint_bar(bar, writer->paint, share / 100), share,
            text_number(digits, value), (int)indent, "");
    return column + indent;
}

static void write_node(const struct writer *writer, const struct calltree_node *node,
                       unsigned depth) {
    const struct calltree_function *function = &writer->tree->functions[node->function];
    size_t column = write_numbers(writer, node->total, depth);
    fputs(paint_code(writer->paint, PAINT_NAME), writer->out);
    column += paint_name(writer->out, writer->paint, function->name, column);
    fputs(paint_code(writer->paint, PAINT_PLAIN), writer->out);
    if (function->group[0] && function->name[0] != '[') {
        struct text group = {0};
        text_format(&group, " (%s)", function->group);
        fputs(paint_code(writer->paint, PAINT_FAINT), writer->out);
        paint_name(writer->out, writer->paint, group.bytes, column);
        fputs(paint_code(writer->paint, PAINT_PLAIN), writer->out);
        text_free(&group);
    }
    fputc('\n', writer->out);
}

// The heaviest first; those of equal weight stay in the order of their names.
static void write_children(const struct writer *writer, const struct calltree_node *node,
                           unsigned depth) {
    struct calltree_node **order = base_allocate((node->count + 1) * sizeof *order);
    uint64_t rest = 0;
    if (node->count)
        memcpy(order, node->children, node->count * sizeof *order);
    qsort(order, node->count, sizeof *order, by_total);
    for (uint32_t i = 0; i < node->count; i++) {
        if (order[i]->total < writer->least) {
            rest += order[i]->total;
            continue;
        }
        write_node(writer, order[i], depth);
        write_children(writer, order[i], depth + 1);
    }
    if (rest >= writer->least) {
        write_numbers(writer, rest, depth);
        fprintf(writer->out, "%s[below the threshold]%s\n", paint_code(writer->paint, PAINT_FAINT),
                paint_code(writer->paint, PAINT_PLAIN));
    }
    free(order);
}

void tree_text(FILE *out, const struct calltree *tree, double threshold,
               const struct paint *paint) {
    struct writer writer = {
        .out = out,
        .tree = tree,
        .paint = paint,
        .least = (uint64_t)((double)tree->root.total * threshold / 100),
    };
    writer.least += !writer.least;
    write_children(&writer, &tree->root, 0);
}
