#include "profile/stacks/calltree_filter.h"

#include <stdlib.h>

#include "base/text.h"

// The path from the root to the node in hand.
struct walk {
    struct calltree *to;
    const struct calltree_filter *filter;
    uint32_t *numbers; // by function of the old tree: its number in the new one
    uint32_t *path, *kept;
    size_t path_room, kept_room;
};

// What is known about the path so far.
struct seen {
    bool focus, ignored;
    size_t at; // the depth of the first frame of `at`, from 1; 0: none
};

static void add_path(struct walk *walk, const struct seen *seen, size_t depth, uint64_t value) {
    const struct calltree_filter *filter = walk->filter;
    if (seen->ignored || (filter->focus && !seen->focus) || (filter->at && !seen->at))
        return;
    size_t first = filter->at && filter->side == CALLTREE_BELOW ? seen->at - 1 : 0;
    size_t last = filter->at && filter->side == CALLTREE_ABOVE ? seen->at : depth;
    size_t count = 0;
    for (size_t i = first; i < last; i++)
        if (!filter->hide || !filter->hide[walk->path[i]])
            walk->kept[count++] = walk->numbers[walk->path[i]];
    if (count)
        calltree_add(walk->to, walk->kept, count, value);
    else
        walk->to->root.self += value;
}

static void walk_node(struct walk *walk, const struct calltree_node *node, struct seen seen,
                      size_t depth) {
    const struct calltree_filter *filter = walk->filter;
    if (node->function != CALLTREE_ROOT) {
        walk->path = base_reach(walk->path, &walk->path_room, depth, sizeof *walk->path);
        walk->kept = base_reach(walk->kept, &walk->kept_room, depth, sizeof *walk->kept);
        walk->path[depth++] = node->function;
        seen.focus |= filter->focus && filter->focus[node->function];
        seen.ignored |= filter->ignore && filter->ignore[node->function];
        if (filter->at && !seen.at && filter->at[node->function])
            seen.at = depth;
    }
    if (node->self)
        add_path(walk, &seen, depth, node->self);
    for (uint32_t i = 0; i < node->count && !seen.ignored; i++)
        walk_node(walk, node->children[i], seen, depth);
}

struct calltree *calltree_filtered(const struct calltree *tree,
                                   const struct calltree_filter *filter, size_t node_max) {
    struct walk walk = {
        .to = calltree_new(node_max),
        .filter = filter,
        .numbers = base_allocate((tree->function_count + 1) * sizeof *walk.numbers),
    };
    for (size_t i = 0; i < tree->function_count; i++)
        walk.numbers[i] =
            calltree_function(walk.to, tree->functions[i].name, tree->functions[i].group);
    walk_node(&walk, &tree->root, (struct seen){0}, 0);
    calltree_finish(walk.to);
    free(walk.numbers);
    free(walk.path);
    free(walk.kept);
    return walk.to;
}
