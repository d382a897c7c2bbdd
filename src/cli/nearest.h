// Finds what a mistyped word may mean: the nearest of all candidates, if it is near enough. Pure
// computation.
#ifndef QUERN_CLI_NEAREST_H
#define QUERN_CLI_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; // what was typed, `size` characters
    size_t size;
    const char *found; // NULL: nothing is near
    size_t distance;   // of it
};

struct nearest nearest_to(const char *word, size_t size);
void nearest_offer(struct nearest *, const char *candidate);

#endif
