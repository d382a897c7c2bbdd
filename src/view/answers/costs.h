// What answers about costs share: the profile and event that were asked for, and functions by
// number. For answers/costs.c, groups.c, reach.c and source.c only. Supervisor context.
#ifndef QUERN_VIEW_ANSWERS_COSTS_H
#define QUERN_VIEW_ANSWERS_COSTS_H

#include "view/answers/answers.h"

struct costs {
    const struct document *document;
    const struct cost_profile *profile;
    unsigned event;
    struct json *json;
};

// Cycles of functions (profile/costs/inclusive.h) have the numbers after the functions'.

// NULL, or why there are none, to be freed.
char *costs_choose(struct document *document, const struct ask *ask, struct json *json,
                   struct costs *costs);
// What a function or cycle costs with what it calls.
uint64_t costs_inclusive(const struct costs *costs, uint32_t number);
uint64_t costs_of_call(const struct costs *costs, const struct cost_call *call);
// Likewise, but 0 for a call within a function or a cycle: what it costs is counted already.
uint64_t costs_of_call_outside(const struct costs *costs, const struct cost_call *call);
// Number, name, object, file and costs of a function, into an object that is open.
void costs_tell_function(const struct costs *costs, uint32_t number);
// The one asked for by number or name, or else the one that costs most, by itself or with what it
// calls, as of several with that name; there may be no such function.
uint32_t costs_function_asked(const struct costs *costs, const struct ask *ask, bool by_own);

#endif
