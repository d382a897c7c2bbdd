#include "engine/memory/room.h"

#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/memory/shadow_area.h"

enum { CACHE_LEAST = 16 << 20 };

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool has_code(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.prot & PROT_EXEC)
            return true;
    return false;
}

static bool has_memory(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.tag != SPACE_ENGINE)
            return true;
    return false;
}

// Whole pieces of the table: that is how it is mapped.
static bool is_in_way_of_table(uint64_t start, uint64_t end, int prot) {
    const uint64_t code = TABLE_PIECE / 4;
    if (start < JUMP_TABLE_END && end > JUMP_TABLE) {
        uint64_t first = (most(start, JUMP_TABLE) - JUMP_TABLE) / TABLE_PIECE;
        uint64_t last = (least(end, JUMP_TABLE_END) - 1 - JUMP_TABLE) / TABLE_PIECE;
        if (has_code(first * code, (last + 1) * code))
            return true;
    }
    if (!(prot & PROT_EXEC) || start >= TABLE_CODE_END)
        return false;
    uint64_t last = (least(end, TABLE_CODE_END) - 1) / code;
    uint64_t table = JUMP_TABLE + start / code * TABLE_PIECE;
    uint64_t table_end = JUMP_TABLE + (last + 1) * TABLE_PIECE;
    return (start < table_end && end > table) || has_memory(table, table_end);
}

static enum cache_lookup lookup_needed(uint64_t start, uint64_t end, int prot) {
    if (cache_lookup == LOOKUP_KEYS || cache_takes_table(start, end) ||
        is_in_way_of_table(start, end, prot))
        return LOOKUP_KEYS;
    bool is_between = prot & PROT_EXEC && start < NON_TABLE_END && end > TABLE_CODE_END;
    return is_between && cache_lookup == LOOKUP_TABLE ? LOOKUP_BOTH : cache_lookup;
}

struct room room_needed(uint64_t start, uint64_t end, int prot) {
    return (struct room){start < cache_end && end > cache_start, lookup_needed(start, end, prot)};
}

bool room_is_ready(uint64_t start, uint64_t end, int prot) {
    struct room room = room_needed(start, end, prot);
    return !room.move && room.lookup == cache_lookup;
}

static uint64_t pick_cache(uint64_t size, uint64_t lo, uint64_t hi) {
    uint64_t at =
        lo < hi ? space_pick(&target_space, size + ROOM_GUARD, SPACE_PAGE, lo, hi, true) : 0;
    return at ? at + ROOM_GUARD : 0;
}

uint64_t room_for_cache(uint64_t start, uint64_t end, uint64_t *size) {
    for (*size = CACHE_END - CACHE_START; *size >= CACHE_LEAST; *size = *size / 2 & ~0xfffful) {
        uint64_t at = pick_cache(*size, most(end, LOW_START), CACHE_LIMIT);
        if (!at)
            at = pick_cache(*size, LOW_START, least(start, CACHE_LIMIT));
        if (at)
            return at;
    }
    return 0;
}

void room_take(uint64_t start, uint64_t end, uint64_t guard) {
    const struct space_attributes attributes = {.tag = SPACE_ENGINE};
    space_map(&target_space, start - guard, end, &attributes);
    shadow_area_forbid(start, end);
}

// The target may have asked for memory in the guard.
void room_give_back(uint64_t start, uint64_t end, uint64_t guard) {
    struct space_range range;
    for (uint64_t at = start - guard; space_next(&target_space, &at, end, &range);)
        if (range.attributes.tag == SPACE_ENGINE)
            space_unmap(&target_space, range.start, range.end);
    shadow_area_permit(start, end);
}
