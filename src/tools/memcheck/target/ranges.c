#include "tools/memcheck/target/ranges.h"

#include "engine/tool.h"
#include "tools/memcheck/target/heap/heap.h"

enum { LARGE_BUFFER = 1024 };

uint64_t range_mapped(uint64_t address, uint64_t size) {
    struct tool_mapping mapping;
    uint64_t at = address;
    if (address >> 47)
        return 0;
    if (!tool_has_shadow(address, 1))
        return size;
    while (at - address < size) {
        if (!tool_mapping_at(at, &mapping) || mapping.start > at || !mapping.prot)
            return at - address;
        at = mapping.end;
    }
    return size;
}

// Servers read into large buffers what is mostly short: looking through their shadow takes longer
// than reading. A live block is addressable as a whole unless the target has said otherwise.
static bool is_inside_block(uint64_t address, uint64_t size) {
    struct heap_block block;
    return size >= LARGE_BUFFER && !shadow_has_holes && heap_find(address, &block) &&
           block.state == HEAP_LIVE && address >= block.start && size <= block.size &&
           address - block.start <= block.size - size;
}

enum shadow_verdict range_check(uint64_t address, uint64_t size, bool values, uint64_t *bad) {
    uint64_t mapped = range_mapped(address, size);
    enum shadow_verdict verdict = SHADOW_FINE;
    if (mapped == size && !values && is_inside_block(address, size))
        return SHADOW_FINE;
    if (mapped)
        verdict = values ? shadow_check_defined(address, mapped, bad)
                         : shadow_check_addressable(address, mapped, bad);
    if (verdict != SHADOW_FINE || mapped == size)
        return verdict;
    *bad = address + mapped;
    return SHADOW_BAD_ADDRESS;
}
