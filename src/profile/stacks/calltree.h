// A call tree with a value at each node. Flame graphs and folded stacks are written from it, for
// any values (samples, bytes, instructions).
//
// Words:
//   function   a name within a group (its library), known by a small number
//   node       a function called along one path; the root stands for everything
//   self       what was counted in the node itself; total adds what lies above it
//
// Invariants: the children of a node have different functions; after calltree_finish they are
// sorted by name, then group, every total is self plus the children's totals, and the output of a
// writer depends on nothing but what was added.
//
// Memory is bounded by the number of nodes given at the start: a path that would need more ends at
// the last node it has, and is counted as shortened. Supervisor only: it allocates.
#ifndef QUERN_PROFILE_CALLTREE_H
#define QUERN_PROFILE_CALLTREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct calltree_function {
    char *name;
    char *group;     // what it belongs to; "" where nothing is known
    uint64_t self;   // after calltree_finish, as is total
    uint64_t total;  // of all stacks it is in, each counted once however often it recurs
    uint32_t active; // used while totals are computed
};

struct calltree_node {
    uint32_t function; // CALLTREE_ROOT for the root
    uint64_t self, total;
    struct calltree_node **children;
    uint32_t count;
};

#define CALLTREE_ROOT UINT32_MAX

struct calltree {
    struct calltree_node root;
    struct calltree_function *functions;
    size_t function_count;
    struct map function_map; // by name and group
    size_t node_count, node_max;
    struct calltree_wide {
        const struct calltree_node *node;
        struct calltree_node *child;
    } * wide; // the children of nodes that have many
    size_t wide_count;
    struct map wide_map; // by node and function of the child
    uint64_t shortened;  // value that was added at a node further out than it should be
};

struct calltree *calltree_new(size_t node_max);
void calltree_free(struct calltree *tree);
// The number of a function, made when new.
uint32_t calltree_function(struct calltree *tree, const char *name, const char *group);
// Adds a value for a path of functions, the outermost first.
void calltree_add(struct calltree *tree, const uint32_t *path, size_t count, uint64_t value);
// Computes totals and sorts; may be called again after more was added.
void calltree_finish(struct calltree *tree);
// Aborts if an invariant does not hold. For tests.
void calltree_check(const struct calltree *tree);

#endif
