// Shadow memory as a tool uses it.
#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/shadow_area.h"

__attribute__((target("general-regs-only"))) bool tool_has_shadow(uint64_t start, size_t size) {
    uint64_t end = start + size;
    if (start >= JUMP_TABLE_END) // heap and stacks: the engine has nothing there
        return end <= SHADOWED_END && start <= end;
    return end <= SHADOWED_END && !cache_takes(start, end);
}

__attribute__((target("general-regs-only"))) bool tool_is_engines(uint64_t address) {
    uint64_t distance = tool->shadow_distance;
    return cache_takes(address, address + 1) || (distance && address - distance < SHADOWED_END);
}

void tool_shadow_fill(uint64_t start, uint64_t end, uint8_t value) {
    shadow_area_fill(start, end, value);
}

void tool_shadow_clear(uint64_t start, uint64_t end) {
    shadow_area_clear(start, end);
}
