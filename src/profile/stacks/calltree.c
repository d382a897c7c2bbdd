#include "profile/stacks/calltree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

#define FIRST_SLOTS 1024
// Nodes with more children than this have them in a hash table, too.
#define FEW_CHILDREN 24

struct calltree *calltree_new(size_t node_max) {
    struct calltree *tree = base_allocate(sizeof *tree);
    *tree = (struct calltree){.root.function = CALLTREE_ROOT, .node_max = node_max};
    tree->slot_count = FIRST_SLOTS;
    tree->slots = base_allocate(tree->slot_count * sizeof *tree->slots);
    memset(tree->slots, 0, tree->slot_count * sizeof *tree->slots);
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
    free(tree->slots);
    free(tree->wide);
    free(tree);
}

// ---- functions ----

static uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
    return hash ^ hash >> 29;
}

static uint32_t *find_slot(const struct calltree *tree, const char *name, const char *group) {
    size_t at = hash_text(hash_text(0xcbf29ce484222325, name), group);
    for (;; at++) {
        uint32_t *slot = &tree->slots[at & (tree->slot_count - 1)];
        if (!*slot)
            return slot;
        const struct calltree_function *function = &tree->functions[*slot - 1];
        if (strcmp(function->name, name) == 0 && strcmp(function->group, group) == 0)
            return slot;
    }
}

static void grow_slots(struct calltree *tree) {
    free(tree->slots);
    tree->slot_count *= 2;
    tree->slots = base_allocate(tree->slot_count * sizeof *tree->slots);
    memset(tree->slots, 0, tree->slot_count * sizeof *tree->slots);
    for (size_t i = 0; i < tree->function_count; i++)
        *find_slot(tree, tree->functions[i].name, tree->functions[i].group) = (uint32_t)i + 1;
}

uint32_t calltree_function(struct calltree *tree, const char *name, const char *group) {
    uint32_t *slot = find_slot(tree, name, group);
    if (*slot)
        return *slot - 1;
    if (tree->function_count + 1 > tree->slot_count / 4 * 3) {
        grow_slots(tree);
        slot = find_slot(tree, name, group);
    }
    *vector_push(tree->functions, tree->function_count) =
        (struct calltree_function){.name = base_copy(name), .group = base_copy(group)};
    *slot = (uint32_t)tree->function_count;
    return *slot - 1;
}

// ---- nodes ----

// The slot of a child of a wide node, or the empty one where it belongs.
static struct calltree_wide *find_wide(const struct calltree *tree,
                                       const struct calltree_node *node, uint32_t function) {
    size_t at =
        ((uintptr_t)node >> 4 ^ (uint64_t)function * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd >> 20;
    for (;; at++) {
        struct calltree_wide *slot = &tree->wide[at & (tree->wide_room - 1)];
        if (!slot->child || (slot->node == node && slot->child->function == function))
            return slot;
    }
}

static void add_wide(struct calltree *tree, struct calltree_node *node,
                     struct calltree_node *child) {
    if ((tree->wide_count + 1) * 4 > tree->wide_room * 3) {
        struct calltree_wide *old = tree->wide;
        size_t old_room = tree->wide_room;
        tree->wide_room = old_room ? old_room * 2 : FIRST_SLOTS;
        tree->wide = base_allocate(tree->wide_room * sizeof *tree->wide);
        memset(tree->wide, 0, tree->wide_room * sizeof *tree->wide);
        for (size_t i = 0; i < old_room; i++)
            if (old[i].child)
                *find_wide(tree, old[i].node, old[i].child->function) = old[i];
        free(old);
    }
    *find_wide(tree, node, child->function) = (struct calltree_wide){node, child};
    tree->wide_count++;
}

static struct calltree_node *find_child(const struct calltree *tree,
                                        const struct calltree_node *node, uint32_t function) {
    if (node->count > FEW_CHILDREN)
        return find_wide(tree, node, function)->child;
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
    if (check_node(tree, &tree->root) != tree->node_count || tree->node_count > tree->node_max)
        abort();
}
