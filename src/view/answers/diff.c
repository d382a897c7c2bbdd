// What has changed between two documents, by function and along the tree of calls. Functions are
// the same if their names and libraries are.
#include <stdlib.h>
#include <string.h>

#include "view/answers/answers.h"

#define NODES_MOST 8000
#define WIDTH      1200
#define ROWS       1000

struct diff {
    const struct document *documents[2];
    unsigned metrics[2];
    const struct calltree *before, *after;
    struct json *json;
    uint64_t least, nodes, rows; // bounds
    uint32_t count;
};

// ---- functions ----

struct change {
    const struct answer_row *before, *after; // either may be NULL
};

static int by_row(const struct answer_row *a, const struct answer_row *b) {
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->group, b->group);
}

static uint64_t own(const struct answer_row *function) {
    return function ? function->self : 0;
}

static uint64_t with_callees(const struct answer_row *function) {
    return function ? function->total : 0;
}

static uint64_t size_of(const struct change *change) {
    uint64_t before = own(change->before), after = own(change->after);
    return before > after ? before - after : after - before;
}

static int by_change(const void *left, const void *right) {
    uint64_t first = size_of(left), second = size_of(right);
    return first < second ? 1 : first > second ? -1 : 0;
}

// Both are sorted.
static size_t join(const struct answer_row *before, size_t before_count,
                   const struct answer_row *after, size_t after_count, struct change *changes) {
    size_t i = 0, j = 0, count = 0;
    while (i < before_count || j < after_count) {
        int order = i == before_count ? 1 : j == after_count ? -1 : by_row(&before[i], &after[j]);
        changes[count++] =
            (struct change){order <= 0 ? &before[i] : NULL, order >= 0 ? &after[j] : NULL};
        i += order <= 0;
        j += order >= 0;
    }
    return count;
}

static void add_changes(struct json *json, const struct change *changes, size_t count,
                        uint64_t most) {
    json_number_at(json, "count", count);
    json_open_at(json, "functions", '[');
    for (size_t i = 0; i < count && i < most; i++) {
        const struct answer_row *known = changes[i].after ? changes[i].after : changes[i].before;
        json_open(json, '{');
        json_string_at(json, "name", known->name);
        json_string_at(json, "library", known->group);
        json_number_at(json, "self_before", own(changes[i].before));
        json_number_at(json, "self_after", own(changes[i].after));
        json_number_at(json, "total_before", with_callees(changes[i].before));
        json_number_at(json, "total_after", with_callees(changes[i].after));
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void add_functions(const struct diff *diff) {
    size_t before_count, after_count;
    struct answer_row *before =
        answer_rows(diff->documents[0], diff->metrics[0], diff->before, &before_count);
    struct answer_row *after =
        answer_rows(diff->documents[1], diff->metrics[1], diff->after, &after_count);
    struct change *changes = base_allocate((before_count + after_count + 1) * sizeof *changes);
    size_t count = join(before, before_count, after, after_count, changes);
    qsort(changes, count, sizeof *changes, by_change);
    add_changes(diff->json, changes, count, diff->rows);
    free(changes);
    free(before);
    free(after);
}

// ---- the tree of both ----

static const struct calltree_function *function_of(const struct calltree *tree,
                                                   const struct calltree_node *node) {
    return node->function == CALLTREE_ROOT ? NULL : &tree->functions[node->function];
}

static uint64_t larger(const struct calltree_node *before, const struct calltree_node *after) {
    uint64_t a = before ? before->total : 0, b = after ? after->total : 0;
    return a > b ? a : b;
}

// [parent, name, library, before, after]. Children are sorted by name in both trees.
static void add_node(struct diff *diff, const struct calltree_node *before,
                     const struct calltree_node *after, int64_t parent) {
    struct json *json = diff->json;
    const struct calltree_function *function =
        before ? function_of(diff->before, before) : function_of(diff->after, after);
    uint32_t number = diff->count++;
    json_open(json, '[');
    json_signed(json, parent);
    json_string(json, function ? function->name : "");
    json_string(json, function ? function->group : "");
    json_number(json, before ? before->total : 0);
    json_number(json, after ? after->total : 0);
    json_close(json, ']');
    uint32_t i = 0, j = 0;
    while ((before && i < before->count) || (after && j < after->count)) {
        const struct calltree_node *left = before && i < before->count ? before->children[i] : NULL;
        const struct calltree_node *right = after && j < after->count ? after->children[j] : NULL;
        if (left && right) {
            const struct calltree_function *a = function_of(diff->before, left);
            const struct calltree_function *b = function_of(diff->after, right);
            int order = strcmp(a->name, b->name);
            order = order ? order : strcmp(a->group, b->group);
            left = order <= 0 ? left : NULL;
            right = order >= 0 ? right : NULL;
        }
        i += left != NULL;
        j += right != NULL;
        if (larger(left, right) >= diff->least && diff->count < diff->nodes)
            add_node(diff, left, right, number);
    }
}

char *answer_diff(struct document *before, struct document *after, const struct ask *ask,
                  struct json *json) {
    if (before->problem || after->problem)
        return base_copy(before->problem ? before->problem : after->problem);
    struct diff diff = {.documents = {before, after}, .json = json};
    unsigned metric;
    char *problem = answer_choose(before, ask, &metric, &diff.before);
    if (problem)
        return problem;
    struct document_metric *shown = &before->metrics[metric];
    int same = document_metric(after, shown->name);
    unsigned shape = ask_flag(ask, "invert") ? CALLTREE_INVERTED : 0;
    diff.after = same < 0 ? NULL : document_tree(after, (unsigned)same, shape);
    diff.before = document_tree(before, metric, shape);
    if (!diff.after)
        return base_copy("the other file has no such metric");
    diff.metrics[0] = metric;
    diff.metrics[1] = (unsigned)same;
    diff.nodes = ask_number(ask, "nodes", NODES_MOST, NODES_MOST);
    diff.rows = ask_number(ask, "count", ROWS, ROWS);
    diff.least = larger(&diff.before->root, &diff.after->root) / WIDTH + 1;
    json_open(json, '{');
    json_string_at(json, "metric", shown->name);
    json_string_at(json, "unit", shown->unit);
    json_number_at(json, "before", shown->total);
    json_number_at(json, "after", after->metrics[same].total);
    add_functions(&diff);
    json_open_at(json, "nodes", '[');
    add_node(&diff, &diff.before->root, &diff.after->root, -1);
    json_close(json, ']');
    json_close(json, '}');
    return NULL;
}
