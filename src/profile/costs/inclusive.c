#include "profile/costs/inclusive.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "profile/costs/components.h"

// One more than asked for, so that none is an array, too.
static void *zeroed(size_t count, size_t size) {
    return base_allocate((count + 1) * size);
}

static struct components find_components(const struct cost_profile *profile) {
    uint32_t count = (uint32_t)profile->function_count, end = 0;
    uint32_t *first = zeroed(count + 1, sizeof *first);
    uint32_t *callees = zeroed(profile->call_count, sizeof *callees);
    for (size_t i = 0; i < profile->call_count; i++)
        first[profile->calls[i].caller]++;
    for (uint32_t i = 0; i <= count; i++)
        first[i] = end += first[i];
    // From the ends downwards.
    for (size_t i = 0; i < profile->call_count; i++)
        callees[--first[profile->calls[i].caller]] = profile->calls[i].callee;
    struct components found = components_find(count, first, callees);
    free(first);
    free(callees);
    return found;
}

// A file that claims more than everything is wrong; what it says is cut, so that shares stay
// shares.
static void add_up(const struct cost_profile *profile, uint64_t *to, const uint64_t *values) {
    for (unsigned i = 0; i < profile->event_count; i++) {
        uint64_t total = profile->totals[i], room = to[i] < total ? total - to[i] : 0;
        to[i] += values[i] < room ? values[i] : room;
    }
}

struct ranked {
    uint32_t component, size;
    uint64_t cost;
};

static int by_cost(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost < b->cost ? 1 : -1;
    return a->component < b->component ? -1 : a->component > b->component;
}

// Cycles with their numbers: the components of several members, by the first event.
static void number_cycles(struct cost_inclusive *inclusive, const struct components *components,
                          const uint64_t *costs) {
    const struct cost_profile *profile = inclusive->profile;
    unsigned events = profile->event_count;
    uint32_t *number = zeroed(components->count, sizeof *number);
    struct ranked *ranked = zeroed(components->count, sizeof *ranked);
    for (uint32_t i = 0; i < components->count; i++)
        if (components->sizes[i] > 1)
            ranked[inclusive->cycle_count++] =
                (struct ranked){i, components->sizes[i], events ? costs[(size_t)i * events] : 0};
    qsort(ranked, inclusive->cycle_count, sizeof *ranked, by_cost);
    inclusive->sizes = zeroed(inclusive->cycle_count, sizeof *inclusive->sizes);
    inclusive->cycles = zeroed((size_t)inclusive->cycle_count * events, sizeof *inclusive->cycles);
    for (uint32_t i = 0; i < inclusive->cycle_count; i++) {
        number[ranked[i].component] = i + 1;
        inclusive->sizes[i] = ranked[i].size;
        memcpy(inclusive->cycles + (size_t)i * events, costs + (size_t)ranked[i].component * events,
               events * sizeof *costs);
    }
    inclusive->cycles_own = zeroed((size_t)inclusive->cycle_count * events, sizeof(uint64_t));
    for (size_t i = 0; i < profile->function_count; i++) {
        uint32_t cycle = inclusive->cycle_of[i] = number[components->of[i]];
        if (cycle)
            add_up(profile, inclusive->cycles_own + (size_t)(cycle - 1) * events,
                   cost_values(profile, profile->functions[i].own));
    }
    free(ranked);
    free(number);
}

struct cost_inclusive *cost_inclusive(const struct cost_profile *profile) {
    unsigned events = profile->event_count;
    size_t count = profile->function_count;
    struct cost_inclusive *inclusive = zeroed(1, sizeof *inclusive);
    *inclusive = (struct cost_inclusive){
        .profile = profile,
        .cycle_of = zeroed(count, sizeof *inclusive->cycle_of),
        .functions = zeroed(count * events, sizeof *inclusive->functions),
    };
    struct components components = find_components(profile);
    uint64_t *sums = zeroed((size_t)components.count * events, sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *own = cost_values(profile, profile->functions[i].own);
        add_up(profile, inclusive->functions + i * events, own);
        add_up(profile, sums + (size_t)components.of[i] * events, own);
    }
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        const uint64_t *values = cost_values(profile, call->inclusive);
        uint32_t from = components.of[call->caller];
        if (from == components.of[call->callee])
            continue;
        add_up(profile, inclusive->functions + (size_t)call->caller * events, values);
        add_up(profile, sums + (size_t)from * events, values);
    }
    number_cycles(inclusive, &components, sums);
    components_free(&components);
    free(sums);
    return inclusive;
}

void cost_inclusive_free(struct cost_inclusive *inclusive) {
    if (!inclusive)
        return;
    free(inclusive->cycle_of);
    free(inclusive->functions);
    free(inclusive->cycles);
    free(inclusive->cycles_own);
    free(inclusive->sizes);
    free(inclusive);
}
