#include "profile/stacks/calltree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vector.h"

// Nodes with more children than this have them in a map, too.
#define FEW_CHILDREN 24

struct calltree *calltree_new(size_t node_max) {
    struct calltree *tree = base_allocate(sizeof *tree);
    *tree = (struct calltree){.root.function = CALLTREE_ROOT, .node_max = node_max};
    return tree;
}

static void free_children(struct calltree_node *node) {
    for (uint32_t i = 0; i < node->count; i++) {
        free_children(node->children[i]);
        free(node->children[i]);
    }
    free(node->children);
}

void calltree_free(struct calltree *tree) {
    free_children(&tree->root);
    for (size_t i = 0; i < tree->function_count; i++) {
        free(tree->functions[i].name);
        free(tree->functions[i].group);
    }
    free(tree->functions);
    map_free(&tree->function_map);
    free(tree->wide);
    map_free(&tree->wide_map);
    free(tree);
}

// ---- functions ----

uint32_t calltree_function(struct calltree *tree, const char *name, const char *group) {
    uint64_t hash = hash_add(hash_words(name, strlen(name)), hash_words(group, strlen(group)));
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&tree->function_map, &walk)) != MAP_NONE;)
        if (strcmp(tree->functions[number].name, name) == 0 &&
            strcmp(tree->functions[number].group, group) == 0)
            return number;
    *vector_push(tree->functions, tree->function_count) =
        (struct calltree_function){.name = base_copy(name), .group = base_copy(group)};
    return map_add(&tree->function_map, hash);
}

// ---- nodes ----

static uint64_t hash_child(const struct calltree_node *node, uint32_t function) {
    return hash_add(hash_add(0, (uintptr_t)node), function);
}

static struct calltree_node *find_wide(const struct calltree *tree,
                                       const struct calltree_node *node, uint32_t function) {
    struct map_walk walk = map_walk(hash_child(node, function));
    for (uint32_t number; (number = map_next(&tree->wide_map, &walk)) != MAP_NONE;)
        if (tree->wide[number].node == node && tree->wide[number].child->function == function)
            return tree->wide[number].child;
    return NULL;
}

static void add_wide(struct calltree *tree, struct calltree_node *node,
                     struct calltree_node *child) {
    *vector_push(tree->wide, tree->wide_count) = (struct calltree_wide){node, child};
    map_add(&tree->wide_map, hash_child(node, child->function));
}

static struct calltree_node *find_child(const struct calltree *tree,
                                        const struct calltree_node *node, uint32_t function) {
    if (node->count > FEW_CHILDREN)
        return find_wide(tree, node, function);
    for (uint32_t i = 0; i < node->count; i++)
        if (node->children[i]->function == function)
            return node->children[i];
    return NULL;
}

static struct calltree_node *child_of(struct calltree *tree, struct calltree_node *node,
                                      uint32_t function) {
    struct calltree_node *known = find_child(tree, node, function);
    if (known)
        return known;
    if (tree->node_count >= tree->node_max)
        return NULL;
    struct calltree_node *child = base_allocate(sizeof *child);
    *child = (struct calltree_node){.function = function};
    tree->node_count++;
    *vector_push(node->children, node->count) = child;
    if (node->count == FEW_CHILDREN + 1)
        for (uint32_t i = 0; i < node->count; i++)
            add_wide(tree, node, node->children[i]);
    else if (node->count > FEW_CHILDREN)
        add_wide(tree, node, child);
    return child;
}

void calltree_add(struct calltree *tree, const uint32_t *path, size_t count, uint64_t value) {
    struct calltree_node *node = &tree->root;
    for (size_t i = 0; i < count; i++) {
        struct calltree_node *child = child_of(tree, node, path[i]);
        if (!child) {
            tree->shortened += value;
            break;
        }
        node = child;
    }
    node->self += value;
}

// ---- totals ----

static int by_name(const void *a, const void *b, void *context) {
    const struct calltree *tree = context;
    const struct calltree_node *first = *(struct calltree_node *const *)a;
    const struct calltree_node *second = *(struct calltree_node *const *)b;
    const struct calltree_function *left = &tree->functions[first->function];
    const struct calltree_function *right = &tree->functions[second->function];
    int order = strcmp(left->name, right->name);
    return order ? order : strcmp(left->group, right->group);
}

static void finish_node(struct calltree *tree, struct calltree_node *node) {
    struct calltree_function *function =
        node->function == CALLTREE_ROOT ? NULL : &tree->functions[node->function];
    if (function)
        function->active++;
    node->total = node->self;
    for (uint32_t i = 0; i < node->count; i++) {
        finish_node(tree, node->children[i]);
        node->total += node->children[i]->total;
    }
    if (node->count > 1)
        qsort_r(node->children, node->count, sizeof *node->children, by_name, tree);
    if (!function)
        return;
    function->self += node->self;
    if (--function->active == 0)
        function->total += node->total;
}

void calltree_finish(struct calltree *tree) {
    for (size_t i = 0; i < tree->function_count; i++)
        tree->functions[i].self = tree->functions[i].total = 0;
    finish_node(tree, &tree->root);
}

static size_t check_node(const struct calltree *tree, const struct calltree_node *node) {
    uint64_t total = node->self;
    size_t nodes = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct calltree_node *child = node->children[i];
        total += child->total;
        nodes += 1 + check_node(tree, child);
        if (child->function >= tree->function_count)
            abort();
        if (i && by_name(&node->children[i - 1], &node->children[i], (void *)tree) >= 0)
            abort();
    }
    if (total != node->total)
        abort();
    return nodes;
}

void calltree_check(const struct calltree *tree) {
    map_check(&tree->function_map);
    map_check(&tree->wide_map);
    if (check_node(tree, &tree->root) != tree->node_count || tree->node_count > tree->node_max)
        abort();
}
