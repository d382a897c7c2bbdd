#include "profile/stacks/calltree_shapes.h"

#include <string.h>
#include <stdlib.h>

#include "base/text.h"

struct walk {
    struct calltree *to;
    uint32_t *numbers; // by function of the old tree
    unsigned shape;
    uint32_t *path; // from the root
    uint32_t *kept; // the path as it is added
    size_t path_room, kept_room;
    size_t
        *depths; // by function of the new tree: its depth on the path, from 1; 0: it is not there
};

static void push(struct walk *walk, size_t depth, uint32_t function) {
    walk->path = base_reach(walk->path, &walk->path_room, depth, sizeof *walk->path);
    walk->kept = base_reach(walk->kept, &walk->kept_room, depth, sizeof *walk->kept);
    walk->path[depth] = function;
}

// A function that comes again takes the path back to its first place.
static size_t without_recursion(struct walk *walk, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t function = walk->path[i];
        size_t before = walk->depths[function];
        if (before) {
            while (kept > before)
                walk->depths[walk->kept[--kept]] = 0;
            continue;
        }
        walk->kept[kept++] = function;
        walk->depths[function] = kept;
    }
    for (size_t i = 0; i < kept; i++)
        walk->depths[walk->kept[i]] = 0;
    return kept;
}

static void add_path(struct walk *walk, size_t count, uint64_t value) {
    if (walk->shape & CALLTREE_MERGED)
        count = without_recursion(walk, count);
    else
        memcpy(walk->kept, walk->path, count * sizeof *walk->kept);
    for (size_t i = 0; walk->shape & CALLTREE_INVERTED && i < count / 2; i++) {
        uint32_t other = walk->kept[i];
        walk->kept[i] = walk->kept[count - 1 - i];
        walk->kept[count - 1 - i] = other;
    }
    calltree_add(walk->to, walk->kept, count, value);
}

static void walk_node(struct walk *walk, const struct calltree_node *node, size_t depth) {
    if (node->self && depth)
        add_path(walk, depth, node->self);
    for (uint32_t i = 0; i < node->count; i++) {
        push(walk, depth, walk->numbers[node->children[i]->function]);
        walk_node(walk, node->children[i], depth + 1);
    }
}

struct calltree *calltree_shaped(const struct calltree *tree, unsigned shape, size_t node_max) {
    struct walk walk = {
        .to = calltree_new(node_max),
        .numbers = base_allocate((tree->function_count + 1) * sizeof *walk.numbers),
        .shape = shape,
        .depths = base_allocate((tree->function_count + 1) * sizeof *walk.depths),
    };
    memset(walk.depths, 0, (tree->function_count + 1) * sizeof *walk.depths);
    for (size_t i = 0; i < tree->function_count; i++)
        walk.numbers[i] =
            calltree_function(walk.to, tree->functions[i].name, tree->functions[i].group);
    walk_node(&walk, &tree->root, 0);
    walk.to->root.self += tree->root.self;
    calltree_finish(walk.to);
    free(walk.numbers);
    free(walk.path);
    free(walk.kept);
    free(walk.depths);
    return walk.to;
}
