// Growing arrays, for the supervisor's side.
//
// A vector is two variables or fields that belong together: a pointer to elements of any type, and
// an integer of any type that counts them. There is no third: the memory behind the pointer always
// holds vector_room(count) elements or more.
//
//     struct line *lines = NULL;
//     size_t line_count = 0;
//     *vector_push(lines, line_count) = (struct line){...};
//     free(lines);
//
// Invariants: the pointer is NULL or comes from this header alone. The count may be made smaller at
// any time; 0 is an empty vector, whose memory the next element reuses. Elements move when the
// vector grows, so a pointer to one is good until then. vector_check aborts if the memory is too
// small.
//
// Running out of memory ends the program, as base_reallocate does. Supervisor only: it allocates.
// For arrays that are filled by number and not from the front, see base_reach (text.h).
#ifndef QUERN_BASE_VECTOR_H
#define QUERN_BASE_VECTOR_H

#include <assert.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/text.h"

enum { VECTOR_FIRST_ROOM = 4 };

// Elements that the memory of a vector of this many holds at least: a power of two, or 0.
static inline size_t vector_room(size_t count) {
    if (count <= VECTOR_FIRST_ROOM)
        return count ? VECTOR_FIRST_ROOM : 0;
    return (size_t)1 << (8 * sizeof count - (size_t)__builtin_clzl(count - 1));
}

// The memory of a vector of `count` elements, with room for `more` behind them. For vector_extend.
static inline void *vector_fit(void *items, size_t count, size_t more, size_t size) {
    assert(items || !count);
    if (count + more <= vector_room(count))
        return items;
    return base_reallocate(items, vector_room(count + more) * size);
}

// Appends `more` elements and points to the first of them. They are not initialised. The arguments
// are evaluated several times.
#define vector_extend(items, count, more)                                                          \
    ({                                                                                             \
        size_t vector_more = (more);                                                               \
        (items) = vector_fit((items), (count), vector_more, sizeof *(items));                      \
        (count) += vector_more;                                                                    \
        (items) + ((count)-vector_more);                                                           \
    })

// For tests: aborts if the memory is too small for what vector_extend will take for granted.
static inline void vector_check(const void *items, size_t count, size_t size) {
    if (items ? malloc_usable_size((void *)items) < vector_room(count) * size : count)
        abort();
}

// Appends one element and points to it. It is not initialised. What is assigned to it must not use
// the vector or its count: C does not say which side of an assignment comes first.
#define vector_push(items, count) vector_extend(items, count, 1)

#endif
