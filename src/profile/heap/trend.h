// Fits a straight line to values at equal distances, by least squares.
#ifndef QUERN_PROFILE_TREND_H
#define QUERN_PROFILE_TREND_H

#include <stddef.h>
#include <stdint.h>

struct trend {
    double slope; // from one value to the next
    double fit;   // the share of the changes that the line explains
};

// Uses the values in [first, end), at least two.
struct trend trend_of(const uint64_t *values, size_t first, size_t end);

#endif
