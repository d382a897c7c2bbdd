// Binary search, the one of Quern.
//
// An array is in order if a condition on its elements holds for none of the first ones and for all
// of the others. search_first finds where that changes:
//
//     size_t i = search_first(at, 0, count, ranges[at].end > address);
//     if (i < count && ranges[i].start <= address)
//         ... ranges[i] contains the address
//
// Both sides. No allocation, no libc, integers only.
#ifndef QUERN_BASE_SEARCH_H
#define QUERN_BASE_SEARCH_H

#include <stddef.h>

// The least index from `from` to `to` - 1 for which the condition holds; `to`: it holds for none.
// The condition names the index `at`, and is evaluated about log2(to - from) times.
#define search_first(at, from, to, condition)                                                      \
    ({                                                                                             \
        size_t search_low = (from), search_high = (to);                                            \
        while (search_low < search_high) {                                                         \
            size_t at = search_low + (search_high - search_low) / 2;                               \
            if (condition)                                                                         \
                search_high = at;                                                                  \
            else                                                                                   \
                search_low = at + 1;                                                               \
        }                                                                                          \
        search_low;                                                                                \
    })

#endif
