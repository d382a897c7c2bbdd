// How the heuristics (profile/findings/leak_heuristics.h) see the target's memory.
#include "profile/findings/leak_heuristics.h"

#include "tools/memcheck/target/leaks/search.h"

// Only words whose value the target knows.
static bool read_block(const void *context, uint64_t address, uint64_t *word) {
    const struct search *search = context;
    if (!ranges_contain(&search->inner, address) || !word_is_known(address))
        return false;
    *word = *(const uint64_t *)address;
    return true;
}

static bool read_table(const void *context, uint64_t table, uint64_t address, uint64_t *word) {
    const struct search *search = context;
    const struct leak_range *range = ranges_after(&search->tables, table);
    return range && range->start <= table && address + 8 <= range->end &&
           tool_read(word, address, sizeof *word) == 0;
}

static bool is_code(const void *context, uint64_t address) {
    return ranges_contain(&((const struct search *)context)->code, address);
}

int heuristic_of(const struct search *search, const struct leak_block *block, uint64_t pointer) {
    struct leak_reader reader = {search, read_block, read_table, is_code};
    return leak_heuristic_of(&reader, search->heuristics, block->start, block->size, pointer);
}
