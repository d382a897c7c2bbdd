// Reads a callgrind.out or cachegrind.out line by line, for callers that need more than the sums of
// costs.h: the targets of calls and jumps, each single instruction, the head.
//
// A visit fills only a profile's strings, events and functions. The profile defines the numbers of
// functions and the order of values, and texts live as long as it does. Supervisor only.
#ifndef QUERN_PROFILE_COSTS_VISIT_H
#define QUERN_PROFILE_COSTS_VISIT_H

#include "profile/costs/costs.h"

struct cost_place {
    uint32_t function;
    uint32_t line; // 0: not known
    const char *file;
    uint64_t address;
    bool has_line, has_address; // whether the file contains them at all
};

struct cost_visited_call {
    struct cost_place at;
    struct cost_place target; // the callee, and the place where it was entered
    uint64_t count;
};

struct cost_visited_jump {
    struct cost_place at;
    struct cost_place target; // the function is that of `at`
    const char *function;     // the name of another function that it leads to; NULL: none
    bool conditional;
    uint64_t taken, executed; // executed: if conditional
};

struct cost_visitor {
    // A line "KEY: REST" of the head, before the reader uses it. Returns NULL or an error message.
    const char *(*head)(void *context, const char *key, const char *rest);
    void (*cost)(void *context, const struct cost_place *, const uint64_t *values);
    void (*call)(void *context, const struct cost_visited_call *, const uint64_t *values);
    void (*jump)(void *context, const struct cost_visited_jump *);
    // The stated sum of the file's costs, from "summary:" and "totals:" lines.
    void (*sum)(void *context, bool is_summary, const uint64_t *values);
};

// Reads a file. Returns NULL, or an error message that the caller frees.
char *costs_visit(struct cost_profile *, FILE *in, const struct cost_visitor *, void *context);

#endif
