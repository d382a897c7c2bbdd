#include "report/cost_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/pprof.h"
#include "report/tree_out.h"

#define NODES_MAX ((size_t)1 << 20)
#define NOWHERE   UINT32_MAX
enum { DEPTH_MAX = 400, LEAST_SHARE = 500000 };

// Functions that call each other in a circle, or one function.
struct circle {
    uint32_t first, count;  // in members
    uint64_t total;         // own costs, and those of calls that lead out
    uint64_t received;      // by calls that lead in
    uint32_t entered_first; // where what nobody called begins
    uint64_t start;         // where the rounding of the latest entry began
};

struct walk {
    const struct cost_profile *profile;
    unsigned event;
    struct calltree *tree;
    uint32_t *numbers;   // of functions in the tree
    uint32_t *first;     // call of each function, as number + 1
    uint32_t *next;      // call of the same caller
    uint32_t *circle_of; // functions
    uint32_t *members;   // functions by circle
    uint32_t *place;     // of a function among the members of its circle
    struct circle *circles;
    uint32_t circle_count;
    uint64_t least;           // smaller pieces are not followed further
    uint32_t smaller, deeper; // functions that stand for what is left out
    uint32_t path[DEPTH_MAX + 2];
};

static uint64_t own_of(const struct walk *walk, uint32_t function) {
    return cost_values(walk->profile, walk->profile->functions[function].own)[walk->event];
}

static uint64_t cost_of(const struct walk *walk, const struct cost_call *call) {
    return cost_values(walk->profile, call->inclusive)[walk->event];
}

static void *zeroed(size_t count, size_t size) {
    void *memory = base_allocate((count + 1) * size);
    memset(memory, 0, (count + 1) * size);
    return memory;
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

static void index_calls(struct walk *walk) {
    const struct cost_profile *profile = walk->profile;
    for (size_t i = 0; i < profile->function_count; i++)
        walk->numbers[i] = number_of(walk, &profile->functions[i]);
    walk->smaller = calltree_function(walk->tree, "[smaller calls]", "");
    walk->deeper = calltree_function(walk->tree, "[deeper calls]", "");
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->caller == call->callee || !cost_of(walk, call))
            continue;
        walk->next[i + 1] = walk->first[call->caller];
        walk->first[call->caller] = (uint32_t)i + 1;
    }
}

// ---- circles: strongly connected components, by Tarjan's algorithm
// -------------------------------

struct search {
    struct walk *walk;
    uint32_t *order; // in which functions were reached, from 1
    uint32_t *low;   // the earliest that is reached from here and not yet in a circle
    uint32_t *open;  // functions not yet in a circle
    uint32_t *at;    // the call that is followed next, of functions on the way
    uint32_t *way;
    uint32_t open_count, way_count, reached, member_count;
};

static void reach(struct search *search, uint32_t function) {
    search->order[function] = search->low[function] = ++search->reached;
    search->at[function] = search->walk->first[function];
    search->open[search->open_count++] = function;
    search->way[search->way_count++] = function;
}

static void close_circle(struct search *search, uint32_t function) {
    struct walk *walk = search->walk;
    struct circle *circle = &walk->circles[walk->circle_count];
    *circle = (struct circle){.first = search->member_count, .entered_first = function};
    uint32_t member;
    do {
        member = search->open[--search->open_count];
        walk->circle_of[member] = walk->circle_count;
        walk->place[member] = circle->count++;
        walk->members[search->member_count++] = member;
    } while (member != function);
    walk->circle_count++;
}

static void search_from(struct search *search, uint32_t start) {
    const struct walk *walk = search->walk;
    reach(search, start);
    while (search->way_count) {
        uint32_t function = search->way[search->way_count - 1];
        uint32_t at = search->at[function];
        if (at) {
            uint32_t callee = walk->profile->calls[at - 1].callee;
            search->at[function] = walk->next[at];
            if (!search->order[callee])
                reach(search, callee);
            else if (walk->circle_of[callee] == NOWHERE &&
                     search->order[callee] < search->low[function])
                search->low[function] = search->order[callee];
            continue;
        }
        search->way_count--;
        uint32_t low = search->low[function];
        uint32_t *caller = search->way_count ? &search->way[search->way_count - 1] : NULL;
        if (caller && low < search->low[*caller])
            search->low[*caller] = low;
        if (low == search->order[function])
            close_circle(search, function);
    }
}

static void sum_circles(struct walk *walk) {
    const struct cost_profile *profile = walk->profile;
    for (uint32_t i = 0; i < profile->function_count; i++)
        walk->circles[walk->circle_of[i]].total += own_of(walk, i);
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        uint32_t from = walk->circle_of[call->caller], to = walk->circle_of[call->callee];
        if (from != to) {
            walk->circles[from].total += cost_of(walk, call);
            walk->circles[to].received += cost_of(walk, call);
        }
    }
}

static void find_circles(struct walk *walk) {
    size_t count = walk->profile->function_count;
    struct search search = {.walk = walk,
                            .order = zeroed(count, sizeof(uint32_t)),
                            .low = zeroed(count, sizeof(uint32_t)),
                            .open = zeroed(count, sizeof(uint32_t)),
                            .at = zeroed(count, sizeof(uint32_t)),
                            .way = zeroed(count, sizeof(uint32_t))};
    for (size_t i = 0; i < count; i++)
        walk->circle_of[i] = NOWHERE;
    for (uint32_t i = 0; i < count; i++)
        if (!search.order[i])
            search_from(&search, i);
    sum_circles(walk);
    free(search.order);
    free(search.low);
    free(search.open);
    free(search.at);
    free(search.way);
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
    bool *is_found = zeroed(count, sizeof *is_found);
    entry->chains = base_allocate(count * sizeof *entry->chains);
    entry->chains[0].function = function;
    is_found[walk->place[function]] = true;
    for (uint32_t i = 0; i < found; i++) {
        struct chain *chain = &entry->chains[i];
        chain->next = found;
        for (uint32_t at = walk->first[chain->function]; at; at = walk->next[at]) {
            uint32_t callee = walk->profile->calls[at - 1].callee;
            if (walk->circle_of[callee] != walk->circle_of[function] ||
                is_found[walk->place[callee]])
                continue;
            is_found[walk->place[callee]] = true;
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
    uint32_t circle = walk->circle_of[chain->function];
    walk->path[depth++] = walk->numbers[chain->function];
    add_path(walk, depth, part_of(entry, own_of(walk, chain->function)));
    for (uint32_t i = walk->first[chain->function]; i; i = walk->next[i]) {
        const struct cost_call *call = &walk->profile->calls[i - 1];
        if (walk->circle_of[call->callee] != circle)
            unfold(walk, call->callee, depth, part_of(entry, cost_of(walk, call)));
    }
    for (uint32_t i = chain->next; i < chain->end; i++)
        unfold_member(walk, entry, i, depth < DEPTH_MAX ? depth : DEPTH_MAX - 1);
}

// `value` of what the function costs is spent on this path.
static void unfold(struct walk *walk, uint32_t function, unsigned depth, uint64_t value) {
    struct circle *circle = &walk->circles[walk->circle_of[function]];
    struct entry entry = {.circle = circle, .value = value, .start = next_start(circle)};
    if (!value || !entry.circle->total)
        return;
    if (depth >= DEPTH_MAX) {
        add_marked(walk, depth, walk->deeper, value);
        return;
    }
    if (value < walk->least) {
        walk->path[depth] = walk->numbers[function];
        uint64_t own = part_of(&entry, own_of(walk, function));
        add_path(walk, depth + 1, own);
        add_marked(walk, depth + 1, walk->smaller, value - own);
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
                          .tree = calltree_new(NODES_MAX),
                          .numbers = zeroed(functions, sizeof(uint32_t)),
                          .first = zeroed(functions, sizeof(uint32_t)),
                          .next = zeroed(profile->call_count, sizeof(uint32_t)),
                          .circle_of = zeroed(functions, sizeof(uint32_t)),
                          .members = zeroed(functions, sizeof(uint32_t)),
                          .place = zeroed(functions, sizeof(uint32_t)),
                          .circles = zeroed(functions, sizeof(struct circle)),
                          .least = profile->totals[event] / LEAST_SHARE + 1};
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
    free(walk->numbers);
    free(walk->first);
    free(walk->next);
    free(walk->circle_of);
    free(walk->members);
    free(walk->place);
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
            files[walk.numbers[f]] = profile->functions[f].file;
        tree_pprof_samples(pprof, walk.tree, files, i, profile->event_count);
        free(files);
        walk_close(&walk);
        calltree_free(walk.tree);
    }
    pprof_write(pprof, out);
}
