#include "attach/residency.h"

#include <stdio.h>
#include <string.h>

static bool is_stack(const struct snapshot *snapshot, const struct maps_mapping *mapping) {
    if (strncmp(mapping->path, "[stack", 6) == 0)
        return true;
    for (size_t i = 0; i < snapshot->threads.count; i++) {
        uint64_t pointer = snapshot->threads.threads[i].stack_pointer;
        if (!mapping->inode && pointer >= mapping->start && pointer < mapping->end)
            return true;
    }
    return false;
}

// Of a mapping: bytes in memory that belong to the allocator.
static uint64_t heap_in(const struct snapshot *snapshot, const struct maps_mapping *mapping,
                        const struct heap_range *heaps, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = heaps[i].start > mapping->start ? heaps[i].start : mapping->start;
        uint64_t end = heaps[i].end < mapping->end ? heaps[i].end : mapping->end;
        if (start < end)
            sum += snapshot_resident(snapshot, start, end);
    }
    return sum;
}

static void add_writable(struct census_resident *resident, const struct snapshot *snapshot,
                         const struct maps_mapping *mapping, const struct heap_range *heaps,
                         size_t count) {
    uint64_t bytes = snapshot_resident(snapshot, mapping->start, mapping->end);
    if (mapping->shared)
        resident->shared += bytes;
    else if (mapping->inode)
        resident->files += bytes;
    else if (is_stack(snapshot, mapping))
        resident->stacks += bytes;
    else
        resident->other_anonymous += bytes - heap_in(snapshot, mapping, heaps, count);
}

static void add_heap(struct census *census, const struct snapshot *snapshot,
                     const struct heap_range *heaps, size_t count) {
    struct census_resident *resident = &census->resident;
    uint64_t arenas = 0, all = 0;
    for (size_t i = 0; i < census->arena_count; i++) {
        const struct census_arena *arena = &census->arenas[i];
        resident->in_use += arena->resident_in_use;
        resident->free += arena->resident_free;
        resident->own += arena->resident_other;
        arenas += arena->resident;
    }
    for (size_t i = 0; i < count; i++)
        all += snapshot_resident(snapshot, heaps[i].start, heaps[i].end);
    resident->in_use += all - arenas; // mapped blocks
}

// Memory that was not copied, and huge pages.
static void add_rest(struct census_resident *resident, int pid) {
    char path[64], line[MAPS_LINE_MAX];
    struct maps_mapping mapping = {0}, next;
    snprintf(path, sizeof path, "/proc/%d/smaps", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    bool is_file = false;
    while (fgets(line, sizeof line, file)) {
        unsigned long long kilobytes;
        // A line of a mapping begins with lower-case hexadecimal digits, all others with a word.
        if (strchr("0123456789abcdef", line[0]) && maps_parse(line, &next)) {
            mapping = next;
            is_file = next.inode != 0;
        } else if (sscanf(line, "Rss: %llu", &kilobytes) == 1) {
            if (!(mapping.readable && mapping.writable))
                *(mapping.shared ? &resident->shared
                  : is_file      ? &resident->files
                                 : &resident->other_anonymous) += kilobytes << 10;
        } else if (sscanf(line, "AnonHugePages: %llu", &kilobytes) == 1 ||
                   sscanf(line, "ShmemPmdMapped: %llu", &kilobytes) == 1 ||
                   sscanf(line, "FilePmdMapped: %llu", &kilobytes) == 1) {
            resident->huge += kilobytes << 10;
        }
    }
    fclose(file);
}

void residency_count(struct census *census, const struct snapshot *snapshot,
                     const struct heap_range *heaps, size_t heap_count) {
    census->resident = (struct census_resident){0};
    for (size_t i = 0; i < snapshot->mapping_count; i++)
        if (snapshot->mappings[i].readable && snapshot->mappings[i].writable)
            add_writable(&census->resident, snapshot, &snapshot->mappings[i], heaps, heap_count);
    add_heap(census, snapshot, heaps, heap_count);
    add_rest(&census->resident, census->pid);
}
