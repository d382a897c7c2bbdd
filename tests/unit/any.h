// Numbers that look random and are the same in every run.
#ifndef QUERN_TESTS_ANY_H
#define QUERN_TESTS_ANY_H

#include <stdint.h>

static uint64_t any_state = 1; // may be set, to begin elsewhere

// One that is smaller than this.
static uint64_t any(uint64_t below) {
    any_state = any_state * 6364136223846793005 + 1442695040888963407;
    return (any_state >> 33) % below;
}

#endif
