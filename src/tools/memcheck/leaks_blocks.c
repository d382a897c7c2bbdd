#include "tools/memcheck/leaks_search.h"

#include <string.h>

#include "tools/memcheck/heap.h"
#include "tools/memcheck/pools.h"

// An area is 64 MiB; a granule is small enough that few blocks start in it.
enum { AREA_BITS = 26, GRANULE_BITS = 8, GRANULES = 1 << (AREA_BITS - GRANULE_BITS) };
enum { BATCH = 512 };

// ---- collecting --------------------------------------------------------------------------------

static bool make_room(struct leak_blocks *blocks, size_t room) {
    if (room >= NO_BLOCK)
        return false;
    blocks->room = room;
    blocks->starts = search_map(room * sizeof *blocks->starts);
    blocks->blocks = search_map(room * sizeof *blocks->blocks);
    return blocks->starts && blocks->blocks;
}

bool blocks_add(struct leak_blocks *blocks, uint64_t start, uint64_t size, uint32_t stack,
                bool declared) {
    if (blocks->count == blocks->room)
        return false;
    blocks->starts[blocks->count] = start;
    blocks->blocks[blocks->count++] =
        (struct leak_block){.size = size, .stack = stack, .declared = declared};
    return true;
}

bool blocks_collect(struct leak_blocks *blocks) {
    size_t heap = heap_live_count(), chunks = pools_chunk_count();
    if (!make_room(blocks, heap + chunks))
        return false;
    struct heap_block batch[BATCH];
    uint64_t from = 0;
    size_t count;
    while ((count = heap_list_live(from, batch, BATCH)) != 0) {
        for (size_t i = 0; i < count; i++)
            blocks_add(blocks, batch[i].start, batch[i].size, batch[i].made_at,
                       batch[i].maker == HEAP_CLIENT);
        from = batch[count - 1].start + 1;
    }
    pools_add_chunks(blocks);
    return true;
}

void blocks_free(struct leak_blocks *blocks) {
    search_unmap(blocks->starts, blocks->room * sizeof *blocks->starts);
    search_unmap(blocks->blocks, blocks->room * sizeof *blocks->blocks);
    search_unmap(blocks->tables, blocks->table_size);
    search_unmap(blocks->areas, blocks->area_count * sizeof *blocks->areas);
}

// ---- order -------------------------------------------------------------------------------------

static void swap(struct leak_blocks *blocks, size_t a, size_t b) {
    uint64_t start = blocks->starts[a];
    blocks->starts[a] = blocks->starts[b];
    blocks->starts[b] = start;
    struct leak_block block = blocks->blocks[a];
    blocks->blocks[a] = blocks->blocks[b];
    blocks->blocks[b] = block;
}

// Of two that start together, the larger first: it may contain the other.
static bool is_before(const struct leak_blocks *blocks, size_t a, size_t b) {
    if (blocks->starts[a] != blocks->starts[b])
        return blocks->starts[a] < blocks->starts[b];
    if (blocks->blocks[a].size != blocks->blocks[b].size)
        return blocks->blocks[a].size > blocks->blocks[b].size;
    return blocks->blocks[b].declared && !blocks->blocks[a].declared;
}

static void sift_down(struct leak_blocks *blocks, size_t at, size_t count) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(blocks, child, child + 1))
            child++;
        if (!is_before(blocks, at, child))
            return;
        swap(blocks, at, child);
    }
}

// The heap's blocks come in order; only pools put others behind them.
static void sort(struct leak_blocks *blocks) {
    size_t count = blocks->count;
    bool in_order = true;
    for (size_t i = 1; in_order && i < count; i++)
        in_order = !is_before(blocks, i, i - 1);
    if (in_order)
        return;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(blocks, i, count);
    for (size_t end = count; end-- > 1;) {
        swap(blocks, 0, end);
        sift_down(blocks, 0, end);
    }
}

// A block that others are carved from does not count: they do. What else overlaps is the target's
// mistake, and the later one loses.
static void drop_overlaps(struct leak_blocks *blocks) {
    size_t kept = 0;
    for (size_t i = 0; i < blocks->count; i++) {
        if (kept && blocks_end(blocks, kept - 1) > blocks->starts[i]) {
            if (!blocks->blocks[i].declared)
                continue;
            if (blocks_end(blocks, kept - 1) >= blocks_end(blocks, i))
                kept--;
            else
                continue;
        }
        swap(blocks, kept++, i);
    }
    blocks->count = kept;
}

// ---- index -------------------------------------------------------------------------------------

static size_t area_of(const struct leak_blocks *blocks, uint32_t i) {
    return (blocks->starts[i] - blocks->lowest) >> AREA_BITS;
}

// Returns the number of the first block after the area.
static uint32_t fill_table(const struct leak_blocks *blocks, uint32_t *table, uint64_t start,
                           uint32_t next) {
    for (unsigned i = 0; i <= GRANULES; i++) {
        uint64_t granule = start + ((uint64_t)i << GRANULE_BITS);
        while (next < blocks->count && blocks->starts[next] < granule)
            next++;
        table[i] = next;
    }
    return next;
}

bool blocks_index(struct leak_blocks *blocks) {
    sort(blocks);
    drop_overlaps(blocks);
    if (!blocks->count)
        return true;
    uint64_t mask = ~((1ul << AREA_BITS) - 1);
    blocks->lowest = blocks->starts[0] & mask;
    blocks->span = blocks_end(blocks, blocks->count - 1) - blocks->lowest;
    blocks->area_count = (blocks->span >> AREA_BITS) + 1;
    blocks->areas = search_map(blocks->area_count * sizeof *blocks->areas);
    if (!blocks->areas)
        return false;
    size_t tables = 0;
    for (uint32_t i = 0; i < blocks->count; i++)
        tables += i == 0 || area_of(blocks, i) != area_of(blocks, i - 1);
    blocks->table_size = tables * (GRANULES + 1) * sizeof *blocks->tables;
    blocks->tables = search_map(blocks->table_size);
    if (!blocks->tables)
        return false;
    uint32_t *table = blocks->tables;
    for (uint32_t next = 0; next < blocks->count; table += GRANULES + 1) {
        size_t area = area_of(blocks, next);
        next = fill_table(blocks, table, blocks->lowest + (area << AREA_BITS), next);
        blocks->areas[area] = table;
    }
    return true;
}

void blocks_fetch(const struct leak_blocks *blocks, uint64_t address) {
    uint64_t distance = address - blocks->lowest;
    const uint32_t *area = blocks->areas[distance >> AREA_BITS];
    if (area)
        __builtin_prefetch(&area[(distance >> GRANULE_BITS) % GRANULES]);
}

void blocks_narrow(const struct leak_blocks *blocks, uint64_t address, uint32_t *low,
                   uint32_t *high) {
    uint64_t distance = address - blocks->lowest;
    const uint32_t *area = blocks->areas[distance >> AREA_BITS];
    size_t granule = (distance >> GRANULE_BITS) % GRANULES;
    *low = area ? area[granule] : 0;
    *high = area ? area[granule + 1] : blocks->count;
}

uint32_t blocks_last_before(const struct leak_blocks *blocks, uint64_t address, uint32_t low,
                            uint32_t high) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (blocks->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    // Where none starts in the granule at or below the address, the last one before may reach in.
    return low - 1; // NO_BLOCK before the first
}

uint32_t blocks_find(const struct leak_blocks *blocks, uint64_t address) {
    uint32_t low, high;
    if (address - blocks->lowest >= blocks->span)
        return NO_BLOCK;
    blocks_narrow(blocks, address, &low, &high);
    uint32_t found = blocks_last_before(blocks, address, low, high);
    return found != NO_BLOCK && address < blocks_end(blocks, found) ? found : NO_BLOCK;
}
