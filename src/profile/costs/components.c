// Tarjan's algorithm, with the way kept in an array: chains of calls may be long.
#include "profile/costs/components.h"

#include <stdlib.h>

#include "base/vector.h"

#define NOWHERE UINT32_MAX

struct search {
    const uint32_t *first, *callees;
    struct components found;
    uint32_t *reached_as; // the how-manyth function that was reached it is, from 1; 0: not yet
    uint32_t *low;        // the earliest that is reached from here and is in no component yet
    uint32_t *open;       // functions that are in no component yet
    uint32_t *at;         // the call to follow next, of functions on the way
    uint32_t *way;
    uint32_t open_count, way_count, reached, closed;
};

static uint32_t *numbers(uint32_t count) {
    return base_allocate(((size_t)count + 1) * sizeof(uint32_t));
}

static void reach(struct search *search, uint32_t function) {
    search->reached_as[function] = search->low[function] = ++search->reached;
    search->at[function] = search->first[function];
    search->open[search->open_count++] = function;
    search->way[search->way_count++] = function;
}

static void close_component(struct search *search, uint32_t function) {
    struct components *found = &search->found;
    uint32_t member;
    do {
        member = search->open[--search->open_count];
        found->order[search->closed++] = member;
        found->of[member] = found->count;
        found->sizes[found->count]++;
    } while (member != function);
    found->count++;
}

static void search_from(struct search *search, uint32_t start) {
    reach(search, start);
    while (search->way_count) {
        uint32_t function = search->way[search->way_count - 1];
        if (search->at[function] < search->first[function + 1]) {
            uint32_t callee = search->callees[search->at[function]++];
            if (!search->reached_as[callee])
                reach(search, callee);
            else if (search->found.of[callee] == NOWHERE &&
                     search->reached_as[callee] < search->low[function])
                search->low[function] = search->reached_as[callee];
            continue;
        }
        search->way_count--;
        uint32_t low = search->low[function];
        uint32_t *caller = search->way_count ? &search->way[search->way_count - 1] : NULL;
        if (caller && low < search->low[*caller])
            search->low[*caller] = low;
        if (low == search->reached_as[function])
            close_component(search, function);
    }
}

struct components components_find(uint32_t functions, const uint32_t *first,
                                  const uint32_t *callees) {
    struct search search = {
        .first = first,
        .callees = callees,
        .found = {numbers(functions), numbers(functions), numbers(functions), 0},
        .reached_as = numbers(functions),
        .low = numbers(functions),
        .open = numbers(functions),
        .at = numbers(functions),
        .way = numbers(functions),
    };
    for (uint32_t i = 0; i < functions; i++)
        search.found.of[i] = NOWHERE;
    for (uint32_t i = 0; i < functions; i++)
        if (!search.reached_as[i])
            search_from(&search, i);
    free(search.reached_as);
    free(search.low);
    free(search.open);
    free(search.at);
    free(search.way);
    return search.found;
}

void components_free(struct components *components) {
    free(components->of);
    free(components->order);
    free(components->sizes);
}
