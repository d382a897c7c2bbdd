#include "base/search.h"
#include "base/x86.h"
#include "tools/memcheck/target/leaks/search.h"

#include <string.h>
#include <sys/mman.h>

#include "tools/memcheck/target/heap/heap.h"

enum { LARGE = 8 << 20 };

void *search_map(size_t size) {
    void *memory = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    // What is large is used all over; with few pages, most of the time goes into finding them.
    if (size >= LARGE)
        madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

void search_unmap(void *memory, size_t size) {
    if (memory)
        munmap(memory, size ? size : 1);
}

void *list_add(struct search_list *list, size_t entry_size) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 512;
        // Pages move; nothing is there twice.
        void *more =
            list->at ? mremap(list->at, list->room * entry_size, room * entry_size, MREMAP_MAYMOVE)
                     : search_map(room * entry_size);
        if (!more || more == MAP_FAILED)
            return NULL;
        list->at = more;
        list->room = room;
    }
    return (char *)list->at + entry_size * list->count++;
}

void list_free(struct search_list *list, size_t entry_size) {
    search_unmap(list->at, list->room * entry_size);
    *list = (struct search_list){0};
}

static bool ranges_add(struct leak_ranges *ranges, struct leak_range range) {
    if (range.start >= range.end)
        return true;
    if (ranges->count == ranges->room) {
        size_t room = ranges->room ? 2 * ranges->room : 256;
        struct leak_range *more = search_map(room * sizeof *more);
        if (!more)
            return false;
        if (ranges->count)
            memcpy(more, ranges->at, ranges->count * sizeof *more);
        search_unmap(ranges->at, ranges->room * sizeof *more);
        ranges->at = more;
        ranges->room = room;
    }
    ranges->at[ranges->count++] = range;
    return true;
}

void ranges_free(struct leak_ranges *ranges) {
    search_unmap(ranges->at, ranges->room * sizeof *ranges->at);
    *ranges = (struct leak_ranges){0};
}

const struct leak_range *ranges_after(const struct leak_ranges *ranges, uint64_t address) {
    size_t i = search_first(number, 0, ranges->count, ranges->at[number].end > address);
    return i < ranges->count ? &ranges->at[i] : NULL;
}

bool ranges_contain(const struct leak_ranges *ranges, uint64_t address) {
    const struct leak_range *range = ranges_after(ranges, address);
    return range && range->start <= address;
}

// ---- what there is to search -------------------------------------------------------------------

// Parts of stacks that are not in use, by address.
struct unused {
    struct leak_ranges *ranges;
    bool ok;
};

static void note_unused(const struct tool_thread *thread, void *argument) {
    struct unused *unused = argument;
    uint64_t pointer = thread->registers[RSP] - RED_ZONE;
    if (pointer <= thread->stack_start || pointer >= thread->stack_end)
        return;
    unused->ok &= ranges_add(
        unused->ranges, (struct leak_range){.start = thread->stack_start, .end = pointer & ~7ul});
    // Into its place among the others.
    struct leak_range *at = unused->ranges->at;
    for (size_t i = unused->ranges->count; i-- > 1 && at[i].start < at[i - 1].start;) {
        struct leak_range other = at[i];
        at[i] = at[i - 1];
        at[i - 1] = other;
    }
}

// The part of a mapping that is searched for pointers: all but the heap and unused stack.
static bool add_roots(struct search *search, const struct leak_ranges *unused,
                      const struct leak_range *whole) {
    uint64_t at = whole->start;
    while (at < whole->end) {
        uint64_t end = whole->end, heap_end;
        if (heap_owns(at, &heap_end)) {
            at = heap_end;
            continue;
        }
        if (heap_end < end)
            end = heap_end;
        const struct leak_range *gap = ranges_after(unused, at);
        if (gap && gap->start <= at) {
            at = gap->end;
            continue;
        }
        if (gap && gap->start < end)
            end = gap->start;
        struct leak_range part = *whole;
        part.start = at;
        part.end = end;
        if (!ranges_add(&search->roots, part))
            return false;
        at = end;
    }
    return true;
}

static bool add_mapping(struct search *search, const struct leak_ranges *unused,
                        const struct tool_mapping *mapping) {
    struct leak_range whole = {.start = mapping->start,
                               .end = mapping->end,
                               .guarded = mapping->is_file,
                               .sparse = !mapping->is_file,
                               .bare =
                                   !tool_has_shadow(mapping->start, mapping->end - mapping->start)};
    bool ok = true;
    if (mapping->is_file && mapping->prot & PROT_READ)
        ok &= ranges_add(&search->tables, whole);
    if (mapping->is_file && mapping->prot & PROT_EXEC)
        ok &= ranges_add(&search->code, whole);
    if (!(mapping->prot & PROT_READ))
        return ok;
    // Memory that cannot be written may have been before it was protected, as the loader does with
    // data that is final once it is relocated; but not code.
    if (mapping->is_file && !(mapping->prot & PROT_WRITE) && mapping->prot & PROT_EXEC)
        return ok;
    // Blocks in files are the target's own making, and such files are searched as a whole.
    if (!mapping->is_file)
        ok &= ranges_add(&search->inner, whole);
    return ok && add_roots(search, unused, &whole);
}

bool search_find_memory(struct search *search) {
    struct leak_ranges unused_ranges = {0};
    struct unused unused = {.ranges = &unused_ranges, .ok = true};
    tool_each_thread(note_unused, &unused);
    bool ok = unused.ok;
    struct tool_mapping mapping;
    for (uint64_t at = 0; ok && tool_mapping_at(at, &mapping); at = mapping.end)
        ok = add_mapping(search, &unused_ranges, &mapping);
    ranges_free(&unused_ranges);
    return ok;
}
