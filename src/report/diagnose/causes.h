// Causes of growth, between join.c, which makes them of stacks, causes.c, which judges, and
// patterns.c, which finds words.
//
// Stacks are joined by their first own function: one that allocates for many callers (zmalloc) is
// told by what becomes of it. If only some of its callers' memory grows, these are the causes, and
// it is not. Supervisor context.
#ifndef QUERN_REPORT_DIAGNOSE_CAUSES_H
#define QUERN_REPORT_DIAGNOSE_CAUSES_H

#include "report/diagnose/growth.h"

enum {
    CAUSE_DEPTH = 4,   // own functions by which stacks are joined, at most
    CAUSE_CALLERS = 8, // and those that are looked at
};

// Containers of a stack or a cause at the last moment.
struct growth_boxes {
    uint64_t content; // bytes
    uint64_t count;
    uint64_t largest; // bytes
    uint32_t steps;   // of that one
    uint32_t threads; // that have containers of their own: 0, 1, 2 or more
    uint32_t thread;  // the last of them
    bool is_shared;   // several threads have enlarged one
};

struct growth_cause {
    uint32_t *stacks;
    size_t stack_count;
    size_t depth; // own functions between the allocator and the one that it is about
    uint64_t levels[GROWTH_MOMENTS];
    uint64_t at_turn, blocks;
    struct growth_boxes boxes;
    uint32_t stack;     // that holds most
    const char *holder; // NULL: not known
    // What it comes to:
    enum growth_axis axis;
    bool grows;
    bool is_kept;  // it would grow, but the program gives back hardly anything
    size_t joined; // further causes that belong to it: parts of the same
    size_t first;  // moment from which on it grows
    double rate, error;
};

struct causes {
    const struct growth *growth;
    enum growth_axis axis;
    struct growth_cause *items;
    size_t count;
    struct growth_boxes *boxes; // by stack
};

// What a stack is joined by: its first own functions, as many as the depth and one; to be freed.
// Stacks without any stay apart.
char *cause_key(const struct heap_file *file, uint32_t stack, size_t depth);
void causes_join(struct causes *, const struct growth *, enum growth_axis);
// Whether the function of one cause calls that of another on all of the latter's stacks.
bool causes_calls(const struct causes *, const struct growth_cause *caller,
                  const struct growth_cause *called);
// Adds the parts of a cause by the own functions that call it; how many there are now at the end.
size_t causes_split(struct causes *, size_t index);
void causes_remove(struct causes *, size_t index);
void causes_free(struct causes *);

// Whether a cause follows a pattern that says more than that it grows, and is sure.
bool growth_has_pattern(const struct growth *, const struct growth_cause *);
// Adds the diagnosis of a cause that grows.
void growth_describe(const struct growth *, const struct growth_cause *, struct diagnoses *);
// The same of one that is kept, and so is the rest.
void growth_describe_kept(const struct growth *, const struct growth_cause *, struct diagnoses *);

#endif
