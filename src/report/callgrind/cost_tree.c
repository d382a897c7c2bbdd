#include "report/callgrind/cost_tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/costs/components.h"
#include "report/shared/pprof.h"
#include "report/shared/tree_out.h"

#define NODES_MAX ((size_t)1 << 20)
// In a tree that is as large as this, calls too small to be followed have no nodes of their own, so
// that there is room for all that are followed.
#define NODES_SMALL (NODES_MAX / 8)
enum { DEPTH_MAX = 400, LEAST_SHARE = 500000 };

// Functions that call each other in a circle, or one function.
struct circle {
    uint64_t total;         // own costs, and those of calls that lead out
    uint64_t claimed;       // by calls that lead in, as the file has them
    uint64_t received;      // by these calls in truth: never more than the total
    uint64_t start;         // where the rounding of the latest entry began
    uint32_t entered_first; // where what nobody called begins
    uint32_t count;         // of members
};

// What is asked of functions and calls again and again lies close together: in a large graph most
// of the time would go into fetching it.
struct member {
    uint64_t own;
    uint32_t number; // in the tree
    uint32_t circle;
    uint32_t place; // among the members of its circle
    uint32_t calls; // the first of its calls; those of the next function follow
};

struct edge {
    uint64_t cost;
    uint32_t callee;
};

struct walk {
    const struct cost_profile *profile;
    unsigned event;
    uint64_t whole; // own costs of all functions
    struct calltree *tree;
    struct member *members; // the functions, and one more
    struct edge *edges;     // calls of others that cost something, by caller
    struct circle *circles;
    uint32_t circle_count;
    uint64_t least;           // smaller pieces are not followed further
    uint32_t smaller, deeper; // functions that stand for what is left out
    uint32_t path[DEPTH_MAX + 2];
};

// No call costs more than everything: sums of costs stay small.
static uint64_t cost_of(const struct walk *walk, const struct cost_call *call) {
    uint64_t cost = cost_values(walk->profile, call->inclusive)[walk->event];
    return cost < walk->whole ? cost : walk->whole;
}

static void *zeroed(size_t count, size_t size) {
    return base_allocate((count + 1) * size);
}

// ---- names and calls ---------------------------------------------------------------------------

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t number_of(struct walk *walk, const struct cost_function *function) {
    size_t before = walk->tree->function_count;
    const char *group = base_of(function->object);
    uint32_t number = calltree_function(walk->tree, function->name, group);
    if (walk->tree->function_count > before)
        return number;
    struct text name = {0};
    text_format(&name, "%s (%s)", function->name, base_of(function->file));
    number = calltree_function(walk->tree, name.bytes, group);
    text_free(&name);
    return number;
}

static bool is_followed(const struct walk *walk, const struct cost_call *call) {
    return call->caller != call->callee && cost_of(walk, call);
}

static void name_members(struct walk *walk) {
    const struct cost_profile *profile = walk->profile;
    for (size_t i = 0; i < profile->function_count; i++) {
        const struct cost_function *function = &profile->functions[i];
        walk->members[i].number = number_of(walk, function);
        walk->members[i].own = cost_values(profile, function->own)[walk->event];
    }
    walk->smaller = calltree_function(walk->tree, "[smaller calls]", "");
    walk->deeper = calltree_function(walk->tree, "[deeper calls]", "");
}

static void index_calls(struct walk *walk) {
    const struct cost_profile *profile = walk->profile;
    struct member *members = walk->members;
    uint32_t end = 0;
    for (size_t i = 0; i < profile->call_count; i++)
        if (is_followed(walk, &profile->calls[i]))
            members[profile->calls[i].caller].calls++;
    for (size_t i = 0; i <= profile->function_count; i++)
        members[i].calls = end += members[i].calls;
    // From the ends downwards.
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (is_followed(walk, call))
            walk->edges[--members[call->caller].calls] =
                (struct edge){cost_of(walk, call), call->callee};
    }
}

// ---- circles ----------------------------------------------------------------------------------

// Files may claim more for calls than the callee and what it calls have: where code jumps on to
// code that goes by another name, or the callee stands elsewhere under another file's name. What is
// claimed too much is taken from all these calls in proportion, so that nothing counts twice; what
// was meant by it is in the file without a caller. Callers' sums follow: callees come first.
static void claim_calls(struct walk *walk) {
    for (uint32_t i = 0; i < walk->profile->function_count; i++) {
        const struct member *caller = &walk->members[i];
        for (uint32_t at = caller->calls; at < caller[1].calls; at++) {
            struct circle *to = &walk->circles[walk->members[walk->edges[at].callee].circle];
            if (to != &walk->circles[caller->circle])
                to->claimed += walk->edges[at].cost;
        }
    }
}

static uint64_t granted(struct circle *circle, uint64_t cost) {
    if (circle->claimed <= circle->total) {
        circle->received += cost;
        return cost;
    }
    // `start` counts claims meanwhile. Rounded so that all parts together are the total.
    unsigned __int128 total = circle->total;
    uint64_t before = circle->received;
    circle->start += cost;
    circle->received = (uint64_t)(total * circle->start / circle->claimed);
    return circle->received - before;
}

static void sum_circles(struct walk *walk, const uint32_t *order) {
    claim_calls(walk);
    for (uint32_t i = 0; i < walk->profile->function_count; i++) {
        const struct member *caller = &walk->members[order[i]];
        struct circle *own = &walk->circles[caller->circle];
        own->total += caller->own;
        for (uint32_t at = caller->calls; at < caller[1].calls; at++) {
            struct edge *edge = &walk->edges[at];
            struct circle *to = &walk->circles[walk->members[edge->callee].circle];
            if (to == own)
                continue;
            edge->cost = granted(to, edge->cost);
            own->total += edge->cost;
        }
    }
    for (uint32_t i = 0; i < walk->circle_count; i++)
        walk->circles[i].start = 0;
}

static void find_circles(struct walk *walk) {
    uint32_t count = (uint32_t)walk->profile->function_count;
    uint32_t edges = walk->members[count].calls;
    uint32_t *first = zeroed(count + 1, sizeof *first), *callees = zeroed(edges, sizeof *callees);
    for (uint32_t i = 0; i <= count; i++)
        first[i] = walk->members[i].calls;
    for (uint32_t i = 0; i < edges; i++)
        callees[i] = walk->edges[i].callee;
    struct components found = components_find(count, first, callees);
    walk->circle_count = found.count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t function = found.order[i];
        struct circle *circle = &walk->circles[found.of[function]];
        walk->members[function].circle = found.of[function];
        walk->members[function].place = circle->count++;
        circle->entered_first = function; // the last one is where the search came in
    }
    sum_circles(walk, found.order);
    components_free(&found);
    free(first);
    free(callees);
}

// ---- unfolding ---------------------------------------------------------------------------------

// What comes into a circle through one function. Chains are a tree of the circle's members in the
// order in which they are found, so that those called next by one member stand together.
struct entry {
    const struct circle *circle;
    uint64_t value;
    uint64_t shared; // costs of the circle that have got their part
    uint64_t start;  // of rounding
    struct chain {
        uint32_t function;
        uint32_t next, end; // those whose chains go on from here
    } * chains;
};

static void unfold(struct walk *walk, uint32_t function, unsigned depth, uint64_t value);

// Rounded so that all parts together are the value, each time at another place, so that many small
// values do not all go to the same part.
static uint64_t part_of(struct entry *entry, uint64_t cost) {
    unsigned __int128 value = entry->value;
    uint64_t total = entry->circle->total;
    uint64_t before = (uint64_t)((value * entry->shared + entry->start) / total);
    entry->shared += cost;
    return (uint64_t)((value * entry->shared + entry->start) / total) - before;
}

// The golden section spreads starts evenly.
static uint64_t next_start(struct circle *circle) {
    circle->start = (uint64_t)((circle->start + (unsigned __int128)circle->total * 618 / 1000) %
                               (circle->total ? circle->total : 1));
    return circle->start;
}

static void add_path(struct walk *walk, unsigned depth, uint64_t value) {
    if (value)
        calltree_add(walk->tree, walk->path, depth, value);
}

static void add_marked(struct walk *walk, unsigned depth, uint32_t mark, uint64_t value) {
    walk->path[depth] = mark;
    add_path(walk, depth + 1, value);
}

static void find_chains(const struct walk *walk, struct entry *entry, uint32_t function) {
    uint32_t count = entry->circle->count, found = 1;
    const struct member *members = walk->members;
    bool *is_found = zeroed(count, sizeof *is_found);
    entry->chains = base_allocate(count * sizeof *entry->chains);
    entry->chains[0].function = function;
    is_found[members[function].place] = true;
    for (uint32_t i = 0; i < found; i++) {
        struct chain *chain = &entry->chains[i];
        chain->next = found;
        for (uint32_t at = members[chain->function].calls; at < members[chain->function + 1].calls;
             at++) {
            uint32_t callee = walk->edges[at].callee;
            if (members[callee].circle != members[function].circle ||
                is_found[members[callee].place])
                continue;
            is_found[members[callee].place] = true;
            entry->chains[found++].function = callee;
        }
        chain->end = found;
    }
    free(is_found);
}

// The member's own costs, the calls that lead out of it, and the members whose chains go through
// it.
static void unfold_member(struct walk *walk, struct entry *entry, uint32_t at, unsigned depth) {
    const struct chain *chain = &entry->chains[at];
    const struct member *member = &walk->members[chain->function];
    walk->path[depth++] = member->number;
    add_path(walk, depth, part_of(entry, member->own));
    uint64_t smaller = 0;
    for (uint32_t i = member->calls; i < member[1].calls; i++) {
        const struct edge *edge = &walk->edges[i];
        if (entry->circle->count > 1 && walk->members[edge->callee].circle == member->circle)
            continue;
        uint64_t part = part_of(entry, edge->cost);
        if (part < walk->least && walk->tree->node_count >= NODES_SMALL)
            smaller += part;
        else
            unfold(walk, edge->callee, depth, part);
    }
    add_marked(walk, depth, walk->smaller, smaller);
    for (uint32_t i = chain->next; i < chain->end; i++)
        unfold_member(walk, entry, i, depth < DEPTH_MAX ? depth : DEPTH_MAX - 1);
}

// `value` of what the function costs is spent on this path.
static void unfold(struct walk *walk, uint32_t function, unsigned depth, uint64_t value) {
    if (!value)
        return;
    const struct member *member = &walk->members[function];
    struct circle *circle = &walk->circles[member->circle];
    struct entry entry = {.circle = circle, .value = value, .start = next_start(circle)};
    if (!circle->total)
        return;
    if (depth >= DEPTH_MAX) {
        add_marked(walk, depth, walk->deeper, value);
        return;
    }
    if (value < walk->least) {
        walk->path[depth] = member->number;
        uint64_t own = part_of(&entry, member->own);
        add_path(walk, depth + 1, own);
        add_marked(walk, depth + 1, walk->smaller, value - own);
        return;
    }
    if (circle->count == 1) {
        entry.chains = &(struct chain){.function = function};
        unfold_member(walk, &entry, 0, depth);
        return;
    }
    find_chains(walk, &entry, function);
    unfold_member(walk, &entry, 0, depth);
    free(entry.chains);
}

static void walk_open(struct walk *walk, const struct cost_profile *profile, unsigned event) {
    size_t functions = profile->function_count;
    *walk = (struct walk){.profile = profile,
                          .event = event,
                          .whole = profile->totals[event],
                          .tree = calltree_new(NODES_MAX),
                          .members = zeroed(functions, sizeof(struct member)),
                          .edges = zeroed(profile->call_count, sizeof(struct edge)),
                          .circles = zeroed(functions, sizeof(struct circle)),
                          .least = profile->totals[event] / LEAST_SHARE + 1};
    name_members(walk);
    index_calls(walk);
    find_circles(walk);
    // What nobody has called, or not all of it.
    for (uint32_t i = 0; i < walk->circle_count; i++) {
        const struct circle *circle = &walk->circles[i];
        if (circle->total > circle->received)
            unfold(walk, circle->entered_first, 0, circle->total - circle->received);
    }
    calltree_finish(walk->tree);
}

// All but the tree.
static void walk_close(struct walk *walk) {
    free(walk->members);
    free(walk->edges);
    free(walk->circles);
}

struct calltree *cost_tree(const struct cost_profile *profile, unsigned event) {
    struct walk walk;
    walk_open(&walk, profile, event);
    walk_close(&walk);
    return walk.tree;
}

// ---- pprof -------------------------------------------------------------------------------------

void cost_tree_pprof(FILE *out, const struct cost_profile *profile, unsigned event) {
    struct pprof *pprof = pprof_new();
    for (unsigned i = 0; i < profile->event_count; i++)
        pprof_type(pprof, profile->events[i], "count", i == event);
    for (unsigned i = 0; i < profile->event_count; i++) {
        struct walk walk;
        walk_open(&walk, profile, i);
        const char **files = zeroed(walk.tree->function_count, sizeof *files);
        for (size_t f = 0; f < profile->function_count; f++)
            files[walk.members[f].number] = profile->functions[f].file;
        tree_pprof_samples(pprof, walk.tree, files, i, profile->event_count);
        free(files);
        walk_close(&walk);
        calltree_free(walk.tree);
    }
    pprof_write(pprof, out);
}
