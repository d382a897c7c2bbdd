// Shadow memory as a tool uses it.
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/shadow_area.h"

__attribute__((target("general-regs-only"))) bool tool_has_shadow(uint64_t start, size_t size) {
    return start + size <= CACHE_START ||
           (start - HIGH_START < HIGH_END - HIGH_START && size <= HIGH_END - start);
}

__attribute__((target("general-regs-only"))) bool tool_is_engines(uint64_t address) {
    uint64_t low = tool->shadow_distance, high = HIGH_START + low;
    if (address - CACHE_START < JUMP_TABLE_END - CACHE_START)
        return true;
    return low && (address - low < CACHE_START || address - high < HIGH_END - HIGH_START);
}

void tool_shadow_fill(uint64_t start, uint64_t end) {
    shadow_area_fill(start, end);
}

void tool_shadow_clear(uint64_t start, uint64_t end) {
    shadow_area_clear(start, end);
}
