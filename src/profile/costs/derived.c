#include "profile/costs/derived.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TERMS 10

static const struct derived {
    const char *name, *help;
    struct {
        const char *event;
        uint64_t weight;
    } terms[TERMS];
} table[] = {
    {"L1m", "L1 misses", {{"I1mr", 1}, {"D1mr", 1}, {"D1mw", 1}}},
    {"LLm", "last-level misses", {{"ILmr", 1}, {"DLmr", 1}, {"DLmw", 1}}},
    {"Bm", "mispredicted branches of both kinds", {{"Bcm", 1}, {"Bim", 1}}},
    {"CEst",
     "estimated cycles: Ir + 10 L1m + 100 LLm + 10 Bm + 20 Ge",
     {{"Ir", 1},
      {"I1mr", 10},
      {"D1mr", 10},
      {"D1mw", 10},
      {"ILmr", 100},
      {"DLmr", 100},
      {"DLmw", 100},
      {"Bcm", 10},
      {"Bim", 10},
      {"Ge", 20}}},
};

const char *costs_derived_help(const char *event) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, event) == 0)
            return table[i].help;
    return NULL;
}

// Instructions alone are no estimate of cycles.
static bool is_possible(const struct cost_profile *profile, const struct derived *derived) {
    if (costs_event(profile, derived->name) >= 0)
        return false;
    for (size_t i = 0; i < TERMS && derived->terms[i].event; i++)
        if (strcmp(derived->terms[i].event, "Ir") != 0 &&
            costs_event(profile, derived->terms[i].event) >= 0)
            return true;
    return false;
}

// An event to be added: its weights are by event of the file.
struct added {
    const char *name;
    uint64_t weights[COST_EVENTS];
};

static struct added weigh(const struct cost_profile *profile, const struct derived *derived) {
    struct added added = {.name = derived->name};
    for (size_t i = 0; i < TERMS && derived->terms[i].event; i++) {
        int event = costs_event(profile, derived->terms[i].event);
        if (event >= 0)
            added.weights[event] = derived->terms[i].weight;
    }
    return added;
}

static uint64_t weighed(const uint64_t *values, const uint64_t *weights, unsigned count) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += values[i] * weights[i];
    return sum;
}

// Values lie in rows of one for each event; rows become wider, so their numbers change.
static void widen_numbers(struct cost_profile *profile, unsigned before, unsigned after) {
    for (size_t i = 0; i < profile->function_count; i++)
        profile->functions[i].own = profile->functions[i].own / before * after;
    for (size_t i = 0; i < profile->line_count; i++)
        profile->lines[i].own = profile->lines[i].own / before * after;
    for (size_t i = 0; i < profile->call_count; i++)
        profile->calls[i].inclusive = profile->calls[i].inclusive / before * after;
    for (size_t i = 0; i < profile->instruction_count; i++) {
        struct cost_instruction *one = &profile->instructions[i];
        one->own = one->own / before * after;
        one->inclusive = one->inclusive / before * after;
    }
}

static void widen(struct cost_profile *profile, const struct added *added, unsigned count) {
    unsigned before = profile->event_count, after = before + count;
    size_t rows = profile->value_count / before;
    uint64_t *values = base_allocate((rows * after + 1) * sizeof *values);
    for (size_t i = 0; i < rows; i++)
        memcpy(values + i * after, profile->values + i * before, before * sizeof *values);
    for (unsigned e = 0; e < count; e++) {
        const uint64_t *weights = added[e].weights;
        for (size_t i = 0; i < rows; i++)
            values[i * after + before + e] = weighed(profile->values + i * before, weights, before);
        profile->totals[before + e] = weighed(profile->totals, weights, before);
        profile->events[before + e] = added[e].name;
    }
    widen_numbers(profile, before, after);
    free(profile->values);
    profile->values = values;
    profile->value_count = rows * after;
    profile->event_count = after;
}

void costs_derive(struct cost_profile *profile) {
    struct added added[sizeof table / sizeof *table];
    unsigned count = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (is_possible(profile, &table[i]) && profile->event_count + count < COST_EVENTS)
            added[count++] = weigh(profile, &table[i]);
    if (count)
        widen(profile, added, count);
}

// ---- formulas ----

#define WEIGHT_MOST 1000000

static const char *skip_space(const char *at) {
    return at + strspn(at, " \t");
}

// Reads [WEIGHT [*]] EVENT. NULL: there is none.
static const char *read_term(const struct cost_profile *profile, const char *at,
                             struct added *added) {
    char *end;
    uint64_t weight = 1;
    if (*at >= '0' && *at <= '9') {
        weight = strtoull(at, &end, 10);
        at = skip_space(end);
        if (*at == '*')
            at = skip_space(at + 1);
    }
    size_t size = strcspn(at, " \t+*");
    char name[64];
    if (!size || size >= sizeof name || weight > WEIGHT_MOST)
        return NULL;
    memcpy(name, at, size);
    name[size] = 0;
    int event = costs_event(profile, name);
    if (event < 0)
        return NULL;
    added->weights[event] += weight;
    return skip_space(at + size);
}

bool costs_add_formula(struct cost_profile *profile, const char *formula) {
    struct added added = {.name = formula};
    const char *at = skip_space(formula);
    if (profile->event_count == COST_EVENTS || !(at = read_term(profile, at, &added)))
        return false;
    while (*at == '+')
        if (!(at = read_term(profile, skip_space(at + 1), &added)))
            return false;
    if (*at)
        return false;
    widen(profile, &added, 1);
    return true;
}
