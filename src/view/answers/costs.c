// Costs: functions with callers and callees, and the graph around a function. Functions are named
// by number in the profile.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "profile/costs/inclusive.h"
#include "view/answers/costs.h"
#include "view/answers/groups.h"

#define ROWS        200
#define ROWS_MOST   20000
#define GRAPH_NODES 60
#define GRAPH_SHARE 200 // edges of less than 1/200 of the function are left out

char *costs_choose(struct document *document, const struct ask *ask, struct json *json,
                   struct costs *costs) {
    int event = document_metric(document, ask_value(ask, "metric"));
    if (!document->costs)
        return base_copy("the file holds no costs of functions and lines");
    if (event < 0)
        return base_copy("the file has no such metric");
    *costs = (struct costs){document, document->costs, (unsigned)event, json};
    return NULL;
}

// The cycle that a number stands for, from 1; 0: a function.
static uint32_t cycle_of_number(const struct costs *costs, uint32_t number) {
    size_t functions = costs->profile->function_count;
    return number < functions ? 0 : number - (uint32_t)functions + 1;
}

static uint32_t number_count(const struct costs *costs) {
    return (uint32_t)costs->profile->function_count + costs->document->inclusive->cycle_count;
}

static uint64_t own_of(const struct costs *costs, uint32_t number) {
    const struct cost_profile *profile = costs->profile;
    uint32_t cycle = cycle_of_number(costs, number);
    return (cycle ? cost_own_of_cycle(costs->document->inclusive, cycle)
                  : cost_values(profile, profile->functions[number].own))[costs->event];
}

uint64_t costs_inclusive(const struct costs *costs, uint32_t number) {
    const struct cost_inclusive *inclusive = costs->document->inclusive;
    uint32_t cycle = cycle_of_number(costs, number);
    return (cycle ? cost_inclusive_cycle(inclusive, cycle)
                  : cost_inclusive_of(inclusive, number))[costs->event];
}

uint64_t costs_of_call(const struct costs *costs, const struct cost_call *call) {
    return cost_values(costs->profile, call->inclusive)[costs->event];
}

uint64_t costs_of_call_outside(const struct costs *costs, const struct cost_call *call) {
    bool is_within = cost_is_within(costs->document->inclusive, call->caller, call->callee);
    return is_within ? 0 : costs_of_call(costs, call);
}

void costs_tell_function(const struct costs *costs, uint32_t number) {
    const struct cost_inclusive *inclusive = costs->document->inclusive;
    uint32_t cycle = cycle_of_number(costs, number);
    char name[32];
    snprintf(name, sizeof name, "<cycle %" PRIu32 ">", cycle);
    const struct cost_function named = {.object = "", .file = "", .name = name};
    const struct cost_function *known = cycle ? &named : &costs->profile->functions[number];
    json_number_at(costs->json, "function", number);
    json_string_at(costs->json, "name", known->name);
    json_string_at(costs->json, "object", known->object);
    json_string_at(costs->json, "file", known->file);
    json_number_at(costs->json, "line", cycle ? 0 : costs->document->first_lines[number]);
    json_number_at(costs->json, "own", own_of(costs, number));
    json_number_at(costs->json, "inclusive", costs_inclusive(costs, number));
    json_number_at(costs->json, "cycle", cycle ? 0 : inclusive->cycle_of[number]);
    json_number_at(costs->json, "members", cycle ? inclusive->sizes[cycle - 1] : 0);
}

// ---- the list ----

enum order { BY_OWN, BY_INCLUSIVE, BY_NAME };

struct sorting {
    const struct costs *costs;
    enum order order;
};

// Cycles come before all functions, in their order.
static const char *name_of(const struct costs *costs, uint32_t number) {
    return cycle_of_number(costs, number) ? "" : costs->profile->functions[number].name;
}

static int compare(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    uint64_t first =
        sorting->order == BY_OWN ? own_of(sorting->costs, a) : costs_inclusive(sorting->costs, a);
    uint64_t second =
        sorting->order == BY_OWN ? own_of(sorting->costs, b) : costs_inclusive(sorting->costs, b);
    if (sorting->order == BY_NAME) {
        int by_name = strcmp(name_of(sorting->costs, a), name_of(sorting->costs, b));
        return by_name ? by_name : a < b ? -1 : 1;
    }
    return first != second ? (first < second ? 1 : -1) : a < b ? -1 : 1;
}

// By number. A cycle is called from outside.
static uint64_t *count_calls(const struct costs *costs) {
    const struct cost_profile *profile = costs->profile;
    const struct cost_inclusive *inclusive = costs->document->inclusive;
    uint64_t *counts = base_allocate(((size_t)number_count(costs) + 1) * sizeof *counts);
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        uint32_t cycle = inclusive->cycle_of[call->callee];
        counts[call->callee] += call->count;
        if (cycle && inclusive->cycle_of[call->caller] != cycle)
            counts[profile->function_count + cycle - 1] += call->count;
    }
    return counts;
}

static bool is_searched(const struct costs *costs, uint32_t number, const char *search) {
    if (!search || !*search)
        return true;
    if (cycle_of_number(costs, number))
        return strcasestr("<cycle>", search) != NULL;
    const struct cost_function *function = &costs->profile->functions[number];
    return strcasestr(function->name, search) || strcasestr(function->object, search);
}

// Whether a function is in the group that was asked for, if any. Cycles are in none.
static bool is_in_group(const struct costs *costs, uint32_t number, const struct ask *ask) {
    enum group_by by = group_by(ask_value(ask, "by"));
    const char *wanted = ask_value(ask, "group");
    if (!by || !wanted)
        return true;
    if (cycle_of_number(costs, number))
        return false;
    size_t size;
    const char *group = group_of(&costs->profile->functions[number], by, &size);
    if (strcmp(wanted, GROUP_REST) == 0)
        return size == 0;
    return strlen(wanted) == size && memcmp(group, wanted, size) == 0;
}

char *answer_costs(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    char *problem = costs_choose(document, ask, json, &costs);
    if (problem)
        return problem;
    const struct cost_profile *profile = costs.profile;
    const char *search = ask_value(ask, "search"), *sort = ask_value(ask, "sort");
    struct sorting sorting = {&costs, !sort                       ? BY_INCLUSIVE
                                      : strcmp(sort, "own") == 0  ? BY_OWN
                                      : strcmp(sort, "name") == 0 ? BY_NAME
                                                                  : BY_INCLUSIVE};
    uint32_t *order = base_allocate(((size_t)number_count(&costs) + 1) * sizeof *order);
    size_t count = 0;
    // A cycle's own cost is that of its functions, which are in the list themselves.
    uint32_t last =
        sorting.order == BY_OWN ? (uint32_t)profile->function_count : number_count(&costs);
    for (uint32_t i = 0; i < last; i++)
        if (is_searched(&costs, i, search) && is_in_group(&costs, i, ask))
            order[count++] = i;
    qsort_r(order, count, sizeof *order, compare, &sorting);
    uint64_t *calls = count_calls(&costs);
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(json, '{');
    json_number_at(json, "total", profile->totals[costs.event]);
    json_number_at(json, "count", count);
    json_open_at(json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++) {
        json_open(json, '{');
        costs_tell_function(&costs, order[i]);
        json_number_at(json, "called", calls[order[i]]);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
    free(calls);
    free(order);
    return NULL;
}

size_t answer_heaviest(struct document *document, const char *metric, bool by_own,
                       uint32_t *functions, size_t most) {
    int event = document_metric(document, metric);
    if (!document->costs || event < 0)
        return 0;
    struct costs costs = {document, document->costs, (unsigned)event, NULL};
    struct sorting sorting = {&costs, by_own ? BY_OWN : BY_INCLUSIVE};
    // Cycles have no cost of their own that is not a function's.
    size_t count = by_own ? costs.profile->function_count : number_count(&costs);
    uint32_t *order = base_allocate((count + 1) * sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, compare, &sorting);
    if (count > most)
        count = most;
    memcpy(functions, order, count * sizeof *functions);
    free(order);
    return count;
}

// ---- callers and callees ----

struct other {
    uint32_t function;
    bool is_within; // the calls stay within the function or its cycle
    uint64_t count, cost;
};

// Calls within a cycle come last: their costs overlap.
static int by_cost(const void *left, const void *right) {
    const struct other *a = left, *b = right;
    if (a->is_within != b->is_within)
        return a->is_within ? 1 : -1;
    if (a->cost != b->cost)
        return a->cost < b->cost ? 1 : -1;
    return a->function < b->function ? -1 : a->function > b->function;
}

static bool stands_for(const struct costs *costs, uint32_t number, uint32_t function) {
    uint32_t cycle = cycle_of_number(costs, number);
    return cycle ? costs->document->inclusive->cycle_of[function] == cycle : function == number;
}

// Those that call the function, or that it calls, each once; of a cycle those outside. To be freed.
static struct other *others_of(const struct costs *costs, uint32_t number, bool callers,
                               size_t *count) {
    struct other *list = NULL;
    const struct cost_inclusive *inclusive = costs->document->inclusive;
    *count = 0;
    for (size_t i = 0; i < costs->profile->call_count; i++) {
        const struct cost_call *call = &costs->profile->calls[i];
        uint32_t other = callers ? call->caller : call->callee;
        if (!stands_for(costs, number, callers ? call->callee : call->caller) ||
            (cycle_of_number(costs, number) && stands_for(costs, number, other)))
            continue;
        size_t at = 0;
        while (at < *count && list[at].function != other)
            at++;
        if (at == *count)
            *vector_push(list, *count) =
                (struct other){.function = other,
                               .is_within = cost_is_within(inclusive, call->caller, call->callee)};
        list[at].count += call->count;
        list[at].cost += costs_of_call(costs, call);
    }
    if (*count)
        qsort(list, *count, sizeof *list, by_cost);
    return list;
}

static void add_others(const struct costs *costs, const char *name, uint32_t function,
                       bool callers) {
    size_t count;
    struct other *list = others_of(costs, function, callers, &count);
    json_open_at(costs->json, name, '[');
    for (size_t i = 0; i < count && i < ROWS; i++) {
        json_open(costs->json, '{');
        costs_tell_function(costs, list[i].function);
        json_number_at(costs->json, "count", list[i].count);
        json_number_at(costs->json, "cost", list[i].is_within ? 0 : list[i].cost);
        json_bool_at(costs->json, "within", list[i].is_within);
        json_close(costs->json, '}');
    }
    json_close(costs->json, ']');
    free(list);
}

// The functions of a cycle, those that cost most themselves first. Cycle 0 has none.
static void add_inside(const struct costs *costs, uint32_t cycle) {
    struct sorting sorting = {costs, BY_OWN};
    const uint32_t *cycle_of = costs->document->inclusive->cycle_of;
    uint32_t *list = NULL;
    size_t count = 0;
    for (uint32_t i = 0; i < costs->profile->function_count; i++)
        if (cycle && cycle_of[i] == cycle)
            *vector_push(list, count) = i;
    if (count)
        qsort_r(list, count, sizeof *list, compare, &sorting);
    json_open_at(costs->json, "inside", '[');
    for (size_t i = 0; i < count && i < ROWS; i++) {
        json_open(costs->json, '{');
        costs_tell_function(costs, list[i]);
        json_close(costs->json, '}');
    }
    json_close(costs->json, ']');
    free(list);
}

// ---- the graph around it ----

struct graph {
    struct costs *costs;
    struct graph_node {
        uint32_t function;
        int level;
    } nodes[GRAPH_NODES];
    size_t count;
    uint64_t least;
};

static bool add_node(struct graph *graph, uint32_t function, int level) {
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i].function == function)
            return false;
    if (graph->count == GRAPH_NODES)
        return false;
    graph->nodes[graph->count++] = (struct graph_node){function, level};
    return true;
}

static void spread(struct graph *graph, bool callers, int levels) {
    int step = callers ? -1 : 1;
    for (int level = 0; level < levels; level++) {
        size_t before = graph->count;
        for (size_t i = 0; i < before; i++) {
            if (graph->nodes[i].level != level * step)
                continue;
            size_t count;
            struct other *list = others_of(graph->costs, graph->nodes[i].function, callers, &count);
            // Fewer further out, so that the picture can be taken in.
            for (size_t j = 0; j < count && j < 7u >> level && list[j].cost >= graph->least; j++)
                add_node(graph, list[j].function, (level + 1) * step);
            free(list);
        }
    }
}

static void add_edges(const struct graph *graph, struct json *json) {
    json_open_at(json, "edges", '[');
    for (size_t i = 0; i < graph->count; i++) {
        size_t count;
        struct other *list = others_of(graph->costs, graph->nodes[i].function, false, &count);
        for (size_t j = 0; j < count; j++) {
            size_t to = 0;
            while (to < graph->count && graph->nodes[to].function != list[j].function)
                to++;
            if (to == graph->count || list[j].cost < graph->least)
                continue;
            json_open(json, '[');
            json_number(json, i);
            json_number(json, to);
            json_number(json, list[j].count);
            json_number(json, list[j].is_within ? 0 : list[j].cost);
            json_number(json, list[j].is_within);
            json_close(json, ']');
        }
        free(list);
    }
    json_close(json, ']');
}

static void add_graph(struct costs *costs, uint32_t function) {
    struct graph graph = {.costs = costs,
                          .least = costs_inclusive(costs, function) / GRAPH_SHARE + 1};
    struct json *json = costs->json;
    add_node(&graph, function, 0);
    spread(&graph, true, 2);
    spread(&graph, false, 3);
    json_open_at(json, "nodes", '[');
    for (size_t i = 0; i < graph.count; i++) {
        json_open(json, '{');
        costs_tell_function(costs, graph.nodes[i].function);
        json_name(json, "level");
        json_signed(json, graph.nodes[i].level);
        json_close(json, '}');
    }
    json_close(json, ']');
    add_edges(&graph, json);
}

uint32_t costs_function_asked(const struct costs *costs, const struct ask *ask, bool by_own) {
    const char *asked = ask_value(ask, "function");
    if (asked && *asked >= '0' && *asked <= '9')
        return (uint32_t)ask_number(ask, "function", UINT32_MAX, UINT32_MAX);
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < costs->profile->function_count; i++) {
        if (asked && strcmp(costs->profile->functions[i].name, asked) != 0)
            continue;
        if (best == UINT32_MAX ||
            (by_own ? own_of(costs, i) > own_of(costs, best)
                    : costs_inclusive(costs, i) > costs_inclusive(costs, best)))
            best = i;
    }
    return best;
}

char *answer_calls(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    char *problem = costs_choose(document, ask, json, &costs);
    if (problem)
        return problem;
    uint32_t function = costs_function_asked(&costs, ask, false);
    if (function >= number_count(&costs))
        return base_copy("there is no such function");
    json_open(json, '{');
    costs_tell_function(&costs, function);
    json_number_at(json, "total", costs.profile->totals[costs.event]);
    json_number_at(json, "first_cycle", costs.profile->function_count);
    add_others(&costs, "callers", function, true);
    add_others(&costs, "callees", function, false);
    add_inside(&costs, cycle_of_number(&costs, function));
    add_graph(&costs, function);
    json_close(json, '}');
    return NULL;
}
