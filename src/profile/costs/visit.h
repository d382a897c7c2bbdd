// What a callgrind.out or cachegrind.out says, line by line, for whoever wants more of it than the
// sums of costs.h: where calls and jumps lead to, each instruction for itself, the head.
//
// A visit fills a profile's strings, events and functions, nothing else: numbers of functions and
// the order of values are the profile's, and texts live as long as it does. Supervisor only.
#ifndef QUERN_PROFILE_COSTS_VISIT_H
#define QUERN_PROFILE_COSTS_VISIT_H

#include "profile/costs/costs.h"

struct cost_place {
    uint32_t function;
    uint32_t line; // 0: not known
    const char *file;
    uint64_t address;
    bool has_line, has_address; // whether the file tells them at all
};

struct cost_visited_call {
    struct cost_place at;
    struct cost_place target; // of the callee: its function, and where it was entered
    uint64_t count;
};

struct cost_visited_jump {
    struct cost_place at;
    struct cost_place target; // the function is that of `at`
    const char *function;     // the name of another that it leads into; NULL: it stays
    bool conditional;
    uint64_t taken, executed; // executed: if conditional
};

struct cost_visitor {
    // A line "KEY: REST" of the head, before its meaning is taken. NULL, or what is wrong with it.
    const char *(*head)(void *context, const char *key, const char *rest);
    void (*cost)(void *context, const struct cost_place *, const uint64_t *values);
    void (*call)(void *context, const struct cost_visited_call *, const uint64_t *values);
    void (*jump)(void *context, const struct cost_visited_jump *);
    // What a file says that its costs add up to: of "summary:" and "totals:" lines.
    void (*sum)(void *context, bool is_summary, const uint64_t *values);
};

// Reads a file. NULL, or what is wrong with it, to be freed.
char *costs_visit(struct cost_profile *, FILE *in, const struct cost_visitor *, void *context);

#endif
