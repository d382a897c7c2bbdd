// Pointers to the inside of a block that programs keep on purpose, instead of one to its first
// byte.
//
// The rules read memory through a struct leak_reader, so that they serve memcheck's search inside
// the target and the native search over copies of its memory. They are pure and inline: a caller
// whose reader is constant pays for no indirect call.
#ifndef QUERN_PROFILE_FINDINGS_LEAK_HEURISTICS_H
#define QUERN_PROFILE_FINDINGS_LEAK_HEURISTICS_H

#include <stdbool.h>

#include "profile/findings/leaks.h"

struct leak_reader {
    const void *context;
    // Reads an aligned word of the block in question. False: its value is not known.
    bool (*read_block)(const void *context, uint64_t address, uint64_t *word);
    // Reads an aligned word of what may be a table of functions. False: it does not lie in memory
    // that holds tables, or not in the same piece of it as the table's first word.
    bool (*read_table)(const void *context, uint64_t table, uint64_t address, uint64_t *word);
    bool (*is_code)(const void *context, uint64_t address);
};

enum { LEAK_TABLE_LOWEST = 4096, LEAK_TABLE_WORDS = 20, LEAK_TABLE_FUNCTIONS = 2 };

static inline bool leak_read(const struct leak_reader *reader, uint64_t address, uint64_t *word) {
    return address % 8 == 0 && reader->read_block(reader->context, address, word);
}

// A reference-counted string: length, capacity, count, then the characters.
static inline bool leak_is_string(const struct leak_reader *reader, uint64_t start, uint64_t size,
                                  uint64_t pointer) {
    uint64_t length, capacity;
    return pointer == start + 24 && leak_read(reader, start + 8, &capacity) &&
           24 + capacity + 1 == size && leak_read(reader, start, &length) && length <= capacity;
}

// The length of what follows, as an allocator in the program may store it.
static inline bool leak_has_length(const struct leak_reader *reader, uint64_t start, uint64_t size,
                                   uint64_t pointer) {
    uint64_t length;
    return pointer == start + 8 && leak_read(reader, start, &length) && length > 0 &&
           size - 8 == length;
}

// new[] of objects that need a destructor: their number comes first.
static inline bool leak_is_array(const struct leak_reader *reader, uint64_t start, uint64_t size,
                                 uint64_t pointer) {
    uint64_t count;
    return pointer == start + 8 && leak_read(reader, start, &count) && count > 0 &&
           (size - 8) % count == 0;
}

// A table of virtual functions: two addresses of functions, and only null before and between them.
static inline bool leak_is_function_table(const struct leak_reader *reader, uint64_t table) {
    unsigned functions = 0;
    if (table % 8 || table < LEAK_TABLE_LOWEST)
        return false;
    for (unsigned i = 0; i <= LEAK_TABLE_WORDS; i++) {
        uint64_t word;
        if (!reader->read_table(reader->context, table, table + 8 * i, &word))
            return false;
        if (word == 0)
            continue;
        if (!reader->is_code(reader->context, word))
            return false;
        if (++functions == LEAK_TABLE_FUNCTIONS)
            return true;
    }
    return false;
}

// An object with several base classes, held by a pointer to a later one.
static inline bool leak_is_inner_base(const struct leak_reader *reader, uint64_t start,
                                      uint64_t pointer) {
    uint64_t inner, first;
    return leak_read(reader, pointer, &inner) && leak_is_function_table(reader, inner) &&
           leak_read(reader, start, &first) && leak_is_function_table(reader, first);
}

// The heuristic by which a pointer to the inside of the block counts as one to its first byte;
// -1: none. `wanted` is a set of bits 1 << enum leak_heuristic.
static inline int leak_heuristic_of(const struct leak_reader *reader, unsigned wanted,
                                    uint64_t start, uint64_t size, uint64_t pointer) {
    if (wanted & 1 << LEAK_STDSTRING && leak_is_string(reader, start, size, pointer))
        return LEAK_STDSTRING;
    if (wanted & 1 << LEAK_LENGTH64 && leak_has_length(reader, start, size, pointer))
        return LEAK_LENGTH64;
    if (wanted & 1 << LEAK_NEWARRAY && leak_is_array(reader, start, size, pointer))
        return LEAK_NEWARRAY;
    if (wanted & 1 << LEAK_INHERITANCE && leak_is_inner_base(reader, start, pointer))
        return LEAK_INHERITANCE;
    return -1;
}

#endif
