#include "tools/callgrind/supervisor/build.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static const struct counts_context *contexts_in(const uint8_t *part, uint32_t *count) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    *count = thread->contexts < COUNTS_CONTEXTS ? thread->contexts : COUNTS_CONTEXTS - 1;
    return (const struct counts_context *)(part + COUNTS_AT_CONTEXTS);
}

// Without a context, code belongs to the first function that there is: none.
uint32_t contexts_number(struct counts_build *build, const uint8_t *part, uint32_t context) {
    uint32_t count;
    const struct counts_context *contexts = contexts_in(part, &count);
    return context && context <= count ? build_context(build, &contexts[context])
                                       : build_function(build, 0, 1);
}

// Ids in the order of their functions, so that a context's are found without looking at all.
static void sort_ids(struct counts_build *build) {
    uint32_t functions = build->function_count;
    build->first_id = base_allocate((functions + 2ul) * sizeof *build->first_id);
    memset(build->first_id, 0, (functions + 2ul) * sizeof *build->first_id);
    build->by_function = base_allocate((build->id_count + 1ul) * sizeof *build->by_function);
    for (uint32_t i = 1; i < build->id_count; i++)
        if (build->ids[i].function < functions)
            build->first_id[build->ids[i].function + 2]++;
    for (uint32_t i = 2; i < functions + 2; i++)
        build->first_id[i] += build->first_id[i - 1];
    for (uint32_t i = 1; i < build->id_count; i++)
        if (build->ids[i].function < functions)
            build->by_function[build->first_id[build->ids[i].function + 1]++] = i;
}

// ---- what is there of an area ------------------------------------------------------------------

// Which areas functions have: sorted by function and area.
struct owner {
    uint32_t function, area;
};

static int compare_owners(const void *a, const void *b) {
    const struct owner *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return x->area < y->area ? -1 : x->area > y->area;
}

// What is read: an area's counters for one function, or for those that they belong to, but for what
// contexts of theirs have in that area.
struct sweep {
    const struct counts_thread *thread;
    uint32_t area, function;
    const struct owner *owners; // NULL: none has
    uint32_t owner_count;
};

static void read_range(struct counts_build *build, const struct sweep *sweep, uint32_t first,
                       uint32_t end, bool only_skipped) {
    const uint64_t *counters = (const void *)((const uint8_t *)sweep->thread + COUNTS_AT_COUNTERS +
                                              sweep->area * COUNTS_AREA_SIZE);
    const uint64_t *skipped = counters + (uint64_t)COUNTS_SKIPPED * COUNTS_IDS;
    for (uint32_t i = first ? first : 1; i < end && i < build->id_count; i++) {
        struct owner key = {.function = build->ids[i].function, .area = sweep->area};
        if (only_skipped ? !skipped[i] || counters[i] : !counters[i])
            continue;
        if (!sweep->owners)
            build_counter(build, sweep->thread, sweep->area, i, sweep->function);
        else if (!bsearch(&key, sweep->owners, sweep->owner_count, sizeof key, compare_owners))
            build_counter(build, sweep->thread, sweep->area, i,
                          build_function(build, key.function, 1));
    }
}

// The file is sparse: only what is there is looked at, since a look makes memory of it.
static void read_present(struct counts_build *build, const struct sweep *sweep) {
    enum { IN_PAGE = 4096 / sizeof(uint64_t) };
    int fd = build->source->file;
    off_t start = (off_t)(COUNTS_AT_THREADS + build->thread * COUNTS_THREAD_SIZE +
                          COUNTS_AT_COUNTERS + sweep->area * COUNTS_AREA_SIZE);
    for (uint32_t shift = 0; shift <= COUNTS_SKIPPED; shift += COUNTS_SKIPPED) {
        off_t from = start + (off_t)(shift * COUNTS_AREA_SIZE);
        off_t limit = from + (off_t)(8ul * build->id_count), base = from;
        while (from < limit && (from = lseek(fd, from, SEEK_DATA)) >= 0 && from < limit) {
            off_t to = lseek(fd, from, SEEK_HOLE);
            if (to < 0 || to > limit)
                to = limit;
            uint32_t first = (uint32_t)((from - base) / 8) & ~(IN_PAGE - 1u);
            read_range(build, sweep, first, (uint32_t)((to - base) / 8), shift);
            from = to;
        }
    }
}

void build_area(struct counts_build *build, const uint8_t *part, uint32_t area, uint32_t function) {
    struct sweep sweep = {
        .thread = (const struct counts_thread *)part, .area = area, .function = function};
    read_present(build, &sweep);
}

// ---- contexts ----------------------------------------------------------------------------------

static void read_context(struct counts_build *build, const uint8_t *part,
                         const struct counts_context *context) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    uint32_t number = build_context(build, context);
    if (context->alone)
        build_area(build, part, context->area, number);
    else if (context->function < build->function_count)
        for (uint32_t i = build->first_id[context->function];
             i < build->first_id[context->function + 1]; i++)
            build_counter(build, thread, context->area, build->by_function[i], number);
}

void contexts_read(struct counts_build *build, const uint8_t *part) {
    uint32_t count, last_area = 0, owner_count = 0;
    const struct counts_context *contexts = contexts_in(part, &count);
    struct owner *owners = base_allocate((count + 1ul) * sizeof *owners);
    uint8_t alone[COUNTS_AREAS] = {0};
    if (!build->by_function)
        sort_ids(build);
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t area = contexts[i].area;
        if (area + COUNTS_SKIPPED >= COUNTS_AREAS)
            continue;
        read_context(build, part, &contexts[i]);
        if (contexts[i].alone) {
            alone[area] = 1;
            continue;
        }
        owners[owner_count++] = (struct owner){.function = contexts[i].function, .area = area};
        if (area > last_area)
            last_area = area;
    }
    qsort(owners, owner_count, sizeof *owners, compare_owners);
    // Code without symbols may belong to one function and be run by another, and some code is run
    // while no function is active: it counts for the function that it belongs to.
    struct sweep strays = {
        .thread = (const struct counts_thread *)part, .owners = owners, .owner_count = owner_count};
    for (uint32_t area = 0; area <= last_area; area++) {
        strays.area = area;
        if (!(area & COUNTS_SKIPPED) && !alone[area])
            read_present(build, &strays);
    }
    free(owners);
}
