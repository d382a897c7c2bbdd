// Trees of calls: what a flame graph of some width shows, the children of one node, and how much a
// search finds.
//
// A node is named by its place among its siblings at each level, "0.3.1"; siblings are in the order
// of their names, so that the name stays as long as the file does. "" is the root.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "view/answers/answers.h"
#include "view/documents/part.h"

#define NODES_MOST   20000
#define WIDTH        1200
#define WIDTH_MOST   20000
#define CHILDREN     200
#define SEARCH_LEAST 1
#define METRICS_MOST 6      // of a file whose nodes are shown by all of them
#define SHOWN_MOST   200000 // nodes of its tree

struct writer {
    struct json *json;
    const struct calltree *tree;
    uint64_t least;
    uint32_t *numbers; // by function: its number in the answer plus 1
    uint32_t *used;    // functions in the answer
    uint32_t used_count;
    uint32_t count, most;
};

// The tree that was asked for, or the part of it.
static char *choose_tree(struct document *document, const struct ask *ask, unsigned *metric,
                         const struct calltree **tree) {
    struct document_part part = {
        .focus = ask_value(ask, "focus"),
        .ignore = ask_value(ask, "ignore"),
        .hide = ask_value(ask, "hide"),
        .below = ask_value(ask, "below"),
        .above = ask_value(ask, "above"),
    };
    if (!document_part_is_any(&part))
        return answer_choose(document, ask, metric, tree);
    char *problem = answer_choose_metric(document, ask, metric);
    if (!problem)
        *tree = document_part_tree(document, *metric, answer_shape(ask), &part, &problem);
    return problem;
}

// ---- nodes by name ----

// NULL: there is none. Calls passed for every node on the way, if it is not NULL.
static const struct calltree_node *find_node(const struct calltree *tree, const char *name,
                                             void (*passed)(void *, const struct calltree_node *),
                                             void *context) {
    const struct calltree_node *node = &tree->root;
    while (name && *name) {
        char *end;
        unsigned long at = strtoul(name, &end, 10);
        if (end == name || (*end && *end != '.') || at >= node->count)
            return NULL;
        node = node->children[at];
        if (passed)
            passed(context, node);
        name = *end ? end + 1 : end;
    }
    return node;
}

static void add_name(void *context, const struct calltree_node *node) {
    struct writer *writer = context;
    json_string(writer->json, writer->tree->functions[node->function].name);
}

// ---- a flame graph ----

static uint32_t number_of(struct writer *writer, uint32_t function) {
    if (!writer->numbers[function]) {
        writer->used[writer->used_count] = function;
        writer->numbers[function] = ++writer->used_count;
    }
    return writer->numbers[function] - 1;
}

// [parent, function, total, self, place among its siblings, what its children that are left out
// hold]; the parent of the first is -1, its function -1 if it is the root.
static void add_node(struct writer *writer, const struct calltree_node *node, int64_t parent,
                     uint32_t place) {
    struct json *json = writer->json;
    uint32_t own = writer->count++;
    uint64_t hidden = 0;
    for (uint32_t i = 0; i < node->count; i++)
        if (node->children[i]->total < writer->least)
            hidden += node->children[i]->total;
    json_open(json, '[');
    json_signed(json, parent);
    json_signed(json,
                node->function == CALLTREE_ROOT ? -1 : (int64_t)number_of(writer, node->function));
    json_number(json, node->total);
    json_number(json, node->self);
    json_number(json, place);
    json_number(json, hidden);
    json_close(json, ']');
    for (uint32_t i = 0; i < node->count; i++)
        if (node->children[i]->total >= writer->least && writer->count < writer->most)
            add_node(writer, node->children[i], own, i);
}

static void count_wide(const struct calltree_node *node, uint64_t least, uint32_t *count,
                       uint32_t most) {
    ++*count;
    for (uint32_t i = 0; i < node->count && *count <= most; i++)
        if (node->children[i]->total >= least)
            count_wide(node->children[i], least, count, most);
}

// What is narrower than a pixel is left out; more, if that is still too much.
static uint64_t least_of(const struct calltree_node *node, uint64_t width, uint32_t most) {
    uint64_t least = node->total / width + 1;
    for (uint32_t count = most + 1; count > most; least *= 2) {
        count = 0;
        count_wide(node, least, &count, most);
        if (count <= most)
            break;
    }
    return least;
}

static void add_functions(struct writer *writer) {
    struct json *json = writer->json;
    json_open_at(json, "functions", '[');
    for (uint32_t i = 0; i < writer->used_count; i++) {
        const struct calltree_function *function = &writer->tree->functions[writer->used[i]];
        json_open(json, '[');
        json_string(json, function->name);
        json_string(json, function->group);
        json_number(json, function->self);
        json_number(json, function->total);
        json_close(json, ']');
    }
    json_close(json, ']');
}

char *answer_tree(struct document *document, const struct ask *ask, struct json *json) {
    unsigned metric;
    struct writer writer = {.json = json};
    char *problem = choose_tree(document, ask, &metric, &writer.tree);
    if (problem)
        return problem;
    const char *name = ask_value(ask, "node");
    const struct calltree_node *node = find_node(writer.tree, name, NULL, NULL);
    if (!node)
        return base_copy("there is no such node");
    uint64_t width = ask_number(ask, "width", WIDTH, WIDTH_MOST);
    writer.most = (uint32_t)ask_number(ask, "nodes", NODES_MOST, NODES_MOST);
    writer.least = least_of(node, width ? width : WIDTH, writer.most);
    size_t functions = writer.tree->function_count + 1;
    writer.numbers = base_allocate(functions * sizeof *writer.numbers);
    writer.used = base_allocate(functions * sizeof *writer.used);
    memset(writer.numbers, 0, functions * sizeof *writer.numbers);
    json_open(json, '{');
    json_string_at(json, "metric", document->metrics[metric].name);
    json_string_at(json, "unit", document->metrics[metric].unit);
    json_number_at(json, "total", writer.tree->root.total);
    json_number_at(json, "shortened", writer.tree->shortened);
    json_number_at(json, "tree_nodes", writer.tree->node_count);
    json_string_at(json, "node", name ? name : "");
    json_open_at(json, "path", '[');
    find_node(writer.tree, name, add_name, &writer);
    json_close(json, ']');
    json_open_at(json, "nodes", '[');
    add_node(&writer, node, -1, 0);
    json_close(json, ']');
    add_functions(&writer);
    json_close(json, '}');
    free(writer.numbers);
    free(writer.used);
    return NULL;
}

// ---- children, for a table that is unfolded ----

struct child {
    const struct calltree_node *node;
    uint32_t place;
};

static int by_total(const void *left, const void *right) {
    const struct child *a = left, *b = right;
    if (a->node->total != b->node->total)
        return a->node->total < b->node->total ? 1 : -1;
    return a->place < b->place ? -1 : 1;
}

// The same node in the trees of all metrics. Nodes are found by their names: a tree has only those
// that its metric counts anything for.
struct beside {
    const struct calltree *shown;
    const struct calltree *trees[METRICS_MOST];
    const struct calltree_node *nodes[METRICS_MOST]; // NULL: there is none
    unsigned count;
};

static int compare_functions(const struct calltree_function *a, const struct calltree_function *b) {
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->group, b->group);
}

static const struct calltree_node *find_child(const struct calltree *tree,
                                              const struct calltree_node *node,
                                              const struct calltree_function *wanted) {
    uint32_t low = 0, high = node ? node->count : 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct calltree_node *child = node->children[middle];
        int order = compare_functions(&tree->functions[child->function], wanted);
        if (!order)
            return child;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void follow(void *context, const struct calltree_node *node) {
    struct beside *beside = context;
    for (unsigned i = 0; i < beside->count; i++)
        beside->nodes[i] = find_child(beside->trees[i], beside->nodes[i],
                                      &beside->shown->functions[node->function]);
}

// A tree of a shape may be made of the plain one: with the shown one, all of them are needed at
// once.
_Static_assert(2 * METRICS_MOST + 2 <= DOCUMENT_TREES, "trees do not live long enough");

// None if the file has too many metrics, its tree is large, or only a part of its stacks is shown.
static struct beside find_beside(struct document *document, const struct ask *ask,
                                 const struct calltree *shown) {
    struct beside beside = {.shown = shown};
    bool is_part =
        shown != document_tree(document,
                               (unsigned)document_metric(document, ask_value(ask, "metric")),
                               answer_shape(ask));
    if (!ask_flag(ask, "all") || is_part || document->metric_count > METRICS_MOST ||
        shown->node_count > SHOWN_MOST)
        return beside;
    for (unsigned i = 0; i < document->metric_count; i++) {
        beside.trees[i] = document_tree(document, i, answer_shape(ask));
        beside.nodes[i] = &beside.trees[i]->root;
    }
    beside.count = document->metric_count;
    find_node(shown, ask_value(ask, "node"), follow, &beside);
    return beside;
}

static void add_beside(const struct beside *beside, const struct calltree_function *function,
                       struct json *json) {
    if (!beside->count)
        return;
    json_open_at(json, "all", '[');
    for (unsigned i = 0; i < beside->count; i++) {
        const struct calltree_node *child =
            find_child(beside->trees[i], beside->nodes[i], function);
        json_number(json, child ? child->total : 0);
    }
    json_close(json, ']');
}

char *answer_children(struct document *document, const struct ask *ask, struct json *json) {
    unsigned metric;
    const struct calltree *tree;
    char *problem = choose_tree(document, ask, &metric, &tree);
    if (problem)
        return problem;
    const struct calltree_node *node = find_node(tree, ask_value(ask, "node"), NULL, NULL);
    if (!node)
        return base_copy("there is no such node");
    struct child *children = base_allocate((node->count + 1) * sizeof *children);
    for (uint32_t i = 0; i < node->count; i++)
        children[i] = (struct child){node->children[i], i};
    qsort(children, node->count, sizeof *children, by_total);
    uint64_t most = ask_number(ask, "count", CHILDREN, NODES_MOST);
    struct beside beside = find_beside(document, ask, tree);
    json_open(json, '{');
    json_string_at(json, "unit", document->metrics[metric].unit);
    json_number_at(json, "total", tree->root.total);
    json_number_at(json, "count", node->count);
    json_open_at(json, "rows", '[');
    for (uint32_t i = 0; i < node->count && i < most; i++) {
        const struct calltree_function *function = &tree->functions[children[i].node->function];
        json_open(json, '{');
        json_number_at(json, "place", children[i].place);
        json_string_at(json, "function", function->name);
        json_string_at(json, "library", function->group);
        json_number_at(json, "total", children[i].node->total);
        json_number_at(json, "self", children[i].node->self);
        json_number_at(json, "children", children[i].node->count);
        add_beside(&beside, function, json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
    free(children);
    return NULL;
}

// ---- search ----

// What lies below functions that match; nothing twice.
static uint64_t matched(const struct calltree_node *node, const bool *matches) {
    if (node->function != CALLTREE_ROOT && matches[node->function])
        return node->total;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < node->count; i++)
        sum += matched(node->children[i], matches);
    return sum;
}

static bool *with_text(const struct calltree *tree, const char *text) {
    bool *matches = base_allocate(tree->function_count + 1);
    for (size_t i = 0; i < tree->function_count; i++)
        matches[i] = strcasestr(tree->functions[i].name, text) != NULL;
    return matches;
}

char *answer_match(struct document *document, const struct ask *ask, struct json *json) {
    unsigned metric;
    const struct calltree *tree;
    char *problem = choose_tree(document, ask, &metric, &tree);
    if (problem)
        return problem;
    const char *search = ask_value(ask, "search");
    if (!search || strlen(search) < SEARCH_LEAST)
        return base_copy("nothing to search for");
    bool *matches = ask_flag(ask, "regex") ? document_part_matches(tree, search, &problem)
                                           : with_text(tree, search);
    if (!matches)
        return problem;
    uint64_t functions = 0;
    for (size_t i = 0; i < tree->function_count; i++)
        functions += matches[i];
    json_open(json, '{');
    json_number_at(json, "functions", functions);
    json_number_at(json, "matched", matched(&tree->root, matches));
    json_number_at(json, "total", tree->root.total);
    json_close(json, '}');
    free(matches);
    return NULL;
}
