// Repeatable random numbers: the same seed gives the same forms and states on every machine.
#ifndef DIFFERENTIAL_RANDOM_H
#define DIFFERENTIAL_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15ul;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ z >> 27) * 0x94d049bb133111ebul;
    return z ^ z >> 31;
}

static inline uint64_t random_below(struct random *r, uint64_t limit) {
    return random_next(r) % limit;
}

#endif
