// Shared by the files that follow vector instructions: sources, results, lanes.
//
// Bits say which bits of a value are undefined; a *wide* holds those of the largest register. A
// function vector_run_NAME follows the instructions of one or more classes of table.h.
#ifndef QUERN_MEMCHECK_TRACK_VECTOR_H
#define QUERN_MEMCHECK_TRACK_VECTOR_H

#include "tools/memcheck/target/track/stub.h"
#include "tools/memcheck/target/track/table.h"

// A source's bits, and its value: elements that the writemask excludes are not loaded; one that is
// broadcast is repeated.
void vector_source_bits(struct context *, const struct track *, unsigned operand, wide bits);
void vector_source_value(struct context *, const struct track *, unsigned operand, wide value);
// Writes the first operand: applies the writemask, keeps or clears what lies above.
void vector_set_result(struct context *, const struct track *, wide result);
// The same for a result that is a bit for each lane, into a mask register.
void vector_set_mask_result(struct context *, const struct track *, uint64_t result);

enum mask_operation { MASK_AND, MASK_AND_NOT, MASK_OR, MASK_XOR, MASK_NOT };

// Lanes of up to 64 bits.
static inline uint64_t lane_get(const wide bits, unsigned width, unsigned index) {
    unsigned at = index * width;
    return bits[at / 64] >> at % 64 & width_mask(width);
}
static inline void lane_set(wide bits, unsigned width, unsigned index, uint64_t value) {
    unsigned at = index * width;
    uint64_t mask = width_mask(width) << at % 64;
    bits[at / 64] = (bits[at / 64] & ~mask) | (value << at % 64 & mask);
}
static inline void wide_clear(wide bits) {
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        bits[i] = 0;
}

// Whether operand i is a source that the rule takes data from.
bool vector_is_source(const struct track *, unsigned operand);

track_function vector_run_move, vector_run_logic, vector_run_ternary, vector_run_add,
    vector_run_compare, vector_run_extreme, vector_run_lanes, vector_run_scalar, vector_run_convert,
    vector_run_convert_scalar, vector_run_horizontal, vector_run_pack, vector_run_whole,
    vector_run_test, vector_run_test_mask, vector_run_intersect, vector_run_compare_flags,
    vector_run_classify, vector_run_string, vector_run_gather, vector_run_scatter,
    vector_run_masked_move, vector_run_masked_bytes, vector_run_zero_upper, vector_run_mask;

#endif
