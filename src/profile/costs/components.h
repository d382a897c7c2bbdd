// Strongly connected components of a graph of calls: the sets of functions that reach each other.
// A function that no circle of calls leads through is a component of its own.
#ifndef QUERN_PROFILE_COMPONENTS_H
#define QUERN_PROFILE_COMPONENTS_H

#include <stdint.h>

struct components {
    uint32_t *of;    // by function: its component
    uint32_t *order; // the functions by component, callees first
    uint32_t *sizes; // by component, in the same order
    uint32_t count;  // of components
};

// Function i calls callees[first[i]] to callees[first[i + 1] - 1]. Takes time in proportion to
// functions and calls, and no stack.
struct components components_find(uint32_t functions, const uint32_t *first,
                                  const uint32_t *callees);
void components_free(struct components *);

#endif
