// Blocks in mappings of their own. The allocator keeps no list of them, only counters. The kernel
// joins neighbouring mappings, so every page is looked at: the first page of such a block begins
// with a header that says where the mapping ends.
#include <stdlib.h>

#include "attach/walk.h"
#include "base/vector.h"

#define PAGE SNAPSHOT_PAGE

struct mapped_chunk {
    uint64_t start, end; // of the mapping
    uint64_t block;
};

// Reads a header, which says how far it is from the start of the mapping and to its end.
static bool read_header(const struct heap_walk *walk, const struct maps_mapping *mapping,
                        uint64_t at, struct mapped_chunk *found) {
    struct chunk chunk;
    if (!snapshot_read(walk->snapshot, at, &chunk, sizeof chunk) ||
        (chunk.head & CHUNK_FLAGS) != IS_MAPPED || chunk.before > at - mapping->start)
        return false;
    uint64_t start = at - chunk.before, end = at + chunk_size(&chunk);
    if (start % PAGE || end % PAGE || end > mapping->end || end <= at)
        return false;
    *found = (struct mapped_chunk){start, end, at + CHUNK_HEADER};
    return true;
}

// A block that is aligned has its header in front of it, and the one at the start of the mapping
// stays as it was.
static void find_aligned(const struct heap_walk *walk, const struct maps_mapping *mapping,
                         struct mapped_chunk *found) {
    struct mapped_chunk aligned;
    const struct snapshot *snapshot = walk->snapshot;
    for (uint64_t alignment = 2 * CHUNK_ALIGN; alignment < PAGE; alignment *= 2)
        if (read_header(walk, mapping, found->start + alignment - CHUNK_HEADER, &aligned) &&
            aligned.start == found->start && aligned.end == found->end) {
            *found = aligned;
            return;
        }
    for (uint64_t page = found->start; page < found->end; page += PAGE) {
        size_t number = snapshot_run_after(snapshot, page);
        if (number == snapshot->run_count || snapshot->runs[number].start >= found->end)
            return;
        if (snapshot->runs[number].start > page)
            page = snapshot->runs[number].start;
        if (read_header(walk, mapping, page + PAGE - CHUNK_HEADER, &aligned) &&
            aligned.start == found->start && aligned.end == found->end) {
            *found = aligned;
            return;
        }
    }
}

static bool is_arena_at(const struct heap_walk *walk, size_t arenas, uint64_t address,
                        uint64_t *end) {
    for (size_t i = 0; i < arenas; i++)
        if (walk->heaps[i].start <= address && address < walk->heaps[i].end) {
            *end = walk->heaps[i].end;
            return true;
        }
    return false;
}

// A heap ends in memory that may not be touched, but within its reach no block is mapped.
static void search_mapping(struct heap_walk *walk, const struct maps_mapping *mapping,
                           size_t arenas) {
    for (uint64_t page = mapping->start; page < mapping->end;) {
        struct mapped_chunk found;
        uint64_t end;
        size_t number = snapshot_run_after(walk->snapshot, page);
        if (number == walk->snapshot->run_count)
            return;
        if (walk->snapshot->runs[number].start > page) {
            page = walk->snapshot->runs[number].start;
            continue;
        }
        if (is_arena_at(walk, arenas, page, &end)) {
            page = (end + PAGE - 1) & -PAGE;
            continue;
        }
        if (!read_header(walk, mapping, page, &found) || found.start != page) {
            page += PAGE;
            continue;
        }
        find_aligned(walk, mapping, &found);
        walk_add_block(walk, found.block, found.end - found.block);
        walk_add_heap(walk, found.start, found.end);
        walk->census->mapped.blocks++;
        walk->census->mapped.bytes += found.end - found.block;
        walk->census->mapped_size += found.end - found.start;
        page = found.end;
    }
}

bool walk_mapped(struct heap_walk *walk) {
    size_t arenas = walk->heap_count;
    uint64_t blocks, bytes;
    const struct snapshot *snapshot = walk->snapshot;
    for (size_t i = 0; i < snapshot->mapping_count; i++) {
        const struct maps_mapping *mapping = &snapshot->mappings[i];
        if (mapping->readable && mapping->writable && !mapping->shared && !mapping->inode &&
            !mapping->path[0])
            search_mapping(walk, mapping, arenas);
    }
    const struct census *census = walk->census;
    if (!allocator_mapped(walk->allocator, snapshot, walk->break_start, &blocks, &bytes))
        return walk_fail(walk, "the allocator's counters are not found");
    if (blocks != census->mapped.blocks || bytes != census->mapped_size)
        return walk_fail(
            walk,
            "%llu blocks in mappings of their own were found, and the allocator counts "
            "%llu",
            (unsigned long long)census->mapped.blocks, (unsigned long long)blocks);
    return true;
}
