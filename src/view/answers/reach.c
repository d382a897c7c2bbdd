// All callers or callees of a function, with their distance: the smallest number of calls between
// them.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "view/answers/costs.h"

#define ROWS      200
#define ROWS_MOST 20000
#define FAR       UINT32_MAX

// Neighbours of all functions: those of i are others[first[i]] to others[first[i + 1] - 1].
struct neighbours {
    uint32_t *first, *others;
};

static struct neighbours neighbours_of(const struct cost_profile *profile, bool callers) {
    size_t count = profile->function_count;
    struct neighbours all = {base_allocate((count + 2) * sizeof *all.first),
                             base_allocate((profile->call_count + 1) * sizeof *all.others)};
    memset(all.first, 0, (count + 2) * sizeof *all.first);
    // Counted two places further on, so that filling in brings each to its own place.
    for (size_t i = 0; i < profile->call_count; i++)
        all.first[(callers ? profile->calls[i].callee : profile->calls[i].caller) + 2]++;
    for (size_t i = 2; i < count + 2; i++)
        all.first[i] += all.first[i - 1];
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        uint32_t from = callers ? call->callee : call->caller;
        all.others[all.first[from + 1]++] = callers ? call->caller : call->callee;
    }
    return all;
}

// The functions in reach, the nearest first; distances by function. Returns their number.
static size_t spread(const struct neighbours *all, uint32_t function, uint32_t *order,
                     uint32_t *distances) {
    size_t count = 0;
    order[count++] = function;
    distances[function] = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = order[i];
        for (uint32_t j = all->first[at]; j < all->first[at + 1]; j++) {
            uint32_t other = all->others[j];
            if (distances[other] != FAR)
                continue;
            distances[other] = distances[at] + 1;
            order[count++] = other;
        }
    }
    return count;
}

struct sorting {
    const struct costs *costs;
    const uint32_t *distances;
};

static int by_distance(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (sorting->distances[a] != sorting->distances[b])
        return sorting->distances[a] < sorting->distances[b] ? -1 : 1;
    uint64_t first = costs_inclusive(sorting->costs, a);
    uint64_t second = costs_inclusive(sorting->costs, b);
    return first != second ? (first < second ? 1 : -1) : a < b ? -1 : a > b;
}

static void write_rows(const struct costs *costs, const struct ask *ask, const uint32_t *order,
                       size_t count, const uint32_t *distances) {
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(costs->json, '{');
    json_number_at(costs->json, "total", costs->profile->totals[costs->event]);
    json_number_at(costs->json, "count", count);
    json_open_at(costs->json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++) {
        json_open(costs->json, '{');
        costs_tell_function(costs, order[i]);
        json_number_at(costs->json, "distance", distances[order[i]]);
        json_close(costs->json, '}');
    }
    json_close(costs->json, ']');
    json_close(costs->json, '}');
}

char *answer_reach(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    char *problem = costs_choose(document, ask, json, &costs);
    if (problem)
        return problem;
    uint32_t function = costs_function_asked(&costs, ask, false);
    size_t functions = costs.profile->function_count;
    if (function >= functions)
        return base_copy("there is no such function");
    struct neighbours all = neighbours_of(costs.profile, ask_flag(ask, "callers"));
    uint32_t *order = base_allocate((functions + 1) * sizeof *order);
    uint32_t *distances = base_allocate((functions + 1) * sizeof *distances);
    memset(distances, 0xff, (functions + 1) * sizeof *distances);
    // The function itself comes first, and is not in the answer.
    size_t count = spread(&all, function, order, distances) - 1;
    qsort_r(order + 1, count, sizeof *order, by_distance, &(struct sorting){&costs, distances});
    write_rows(&costs, ask, order + 1, count, distances);
    free(all.first);
    free(all.others);
    free(order);
    free(distances);
    return NULL;
}
