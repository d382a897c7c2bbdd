// Addresses in generated code, with the times of their samples.
//
// Generated code moves: what an address means depends on when it was sampled. So such an address is
// kept in a stack as a *moment*, a number in a range that no address has. Times are rounded down,
// so that equal stacks remain equal for a while. Supervisor only.
#ifndef QUERN_FLAME_MOMENTS_H
#define QUERN_FLAME_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define MOMENTS_START 0x4200000000000000u
#define MOMENTS_END   0x4300000000000000u

// Zero-initialised is empty.
struct moments {
    struct moment {
        uint64_t address, time; // of the first sample in it
    } * list;
    size_t count;
    struct map map;
};

void moments_free(struct moments *moments);
// The number to keep; the address itself if there are too many.
uint64_t moments_add(struct moments *moments, uint64_t address, uint64_t time);
// What a number stands for; false: it is no moment.
bool moments_find(const struct moments *moments, uint64_t number, struct moment *moment);

#endif
