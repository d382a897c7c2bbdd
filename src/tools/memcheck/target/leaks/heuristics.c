// Interior pointers that programs keep on purpose, instead of one to the block's start.
#include "tools/memcheck/target/leaks/search.h"

enum { PAGE = 4096, TABLE_WORDS = 20, FUNCTIONS = 2 };

// A word of a block, if the target knows its value.
static bool read_known(const struct search *search, uint64_t address, uint64_t *value) {
    if (address % 8 || !ranges_contain(&search->inner, address) || !word_is_known(address))
        return false;
    *value = *(const uint64_t *)address;
    return true;
}

// A string that is counted: length, capacity, references, then the characters.
static bool is_string(const struct search *search, uint64_t start, uint64_t size,
                      uint64_t pointer) {
    uint64_t length, capacity;
    return pointer == start + 24 && read_known(search, start + 8, &capacity) &&
           24 + capacity + 1 == size && read_known(search, start, &length) && length <= capacity;
}

// The length of what follows, as an allocator in the program may note it.
static bool has_length(const struct search *search, uint64_t start, uint64_t size,
                       uint64_t pointer) {
    uint64_t length;
    return pointer == start + 8 && read_known(search, start, &length) && length > 0 &&
           size - 8 == length;
}

// new[] of objects that need a destructor: their number comes first.
static bool is_array(const struct search *search, uint64_t start, uint64_t size, uint64_t pointer) {
    uint64_t count;
    return pointer == start + 8 && read_known(search, start, &count) && count > 0 &&
           (size - 8) % count == 0;
}

// A table of virtual functions: two addresses of functions, and nothing else but null before.
static bool is_function_table(const struct search *search, uint64_t address) {
    if (address % 8 || address < PAGE)
        return false;
    const struct leak_range *range = ranges_after(&search->tables, address);
    if (!range || range->start > address)
        return false;
    int functions = 0;
    for (unsigned i = 0; i <= TABLE_WORDS && address + 8 <= range->end; i++, address += 8) {
        uint64_t word;
        if (tool_read(&word, address, sizeof word))
            return false;
        if (word == 0)
            continue;
        if (!ranges_contain(&search->code, word))
            return false;
        if (++functions == FUNCTIONS)
            return true;
    }
    return false;
}

// An object with several base classes, held by a pointer to a later one.
static bool is_inner_base(const struct search *search, uint64_t start, uint64_t pointer) {
    uint64_t inner, first;
    return read_known(search, pointer, &inner) && read_known(search, start, &first) &&
           is_function_table(search, inner) && is_function_table(search, first);
}

int heuristic_of(const struct search *search, const struct leak_block *block, uint64_t pointer) {
    unsigned wanted = search->heuristics;
    uint64_t start = block->start, size = block->size;
    if (wanted & 1 << LEAK_STDSTRING && is_string(search, start, size, pointer))
        return LEAK_STDSTRING;
    if (wanted & 1 << LEAK_LENGTH64 && has_length(search, start, size, pointer))
        return LEAK_LENGTH64;
    if (wanted & 1 << LEAK_NEWARRAY && is_array(search, start, size, pointer))
        return LEAK_NEWARRAY;
    if (wanted & 1 << LEAK_INHERITANCE && is_inner_base(search, start, pointer))
        return LEAK_INHERITANCE;
    return -1;
}
