#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/recording/reader.h"

// ---- events ----

static void tell(struct reader *reader, const struct heap_event *event) {
    reader->ordinal++;
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].event)
            reader->sinks[i].event(reader->sinks[i].context, event);
}

// The class of a block that comes, and its size. 0 when something is wrong with them.
static uint32_t get_class(struct reader *reader, enum recording_sort sort, uint64_t *size) {
    uint32_t class = (uint32_t)reader_bounded(reader, reader->lane + (int)sort,
                                              reader->classes.count, "a class is unknown");
    if (class) {
        *size = reader->classes.list[class].kind.size;
        if (*size == CLASSES_LOOSE)
            *size = reader_bounded(reader, reader->lane + SORT_SIZES, HEAP_SIZE_MAX,
                                   "a block is too large");
        return class;
    }
    uint32_t stack = reader_stack_near(reader, COLUMN_NEW, &reader->last_new);
    *size = reader_bounded(reader, COLUMN_NEW, HEAP_SIZE_MAX, "a block is too large");
    if (!reader->problem && classes_find(&reader->classes, stack, *size))
        reader_wrong(reader, "a class is there twice");
    return reader->problem ? 0 : classes_add(&reader->classes, stack, *size);
}

static uint32_t enter_class(struct reader *reader, uint32_t class, const struct heap_block *block,
                            bool alone) {
    return classes_enter(
        &reader->classes, class,
        &(struct classes_blocks){.size = block->size, .time = block->time, .thread = block->thread},
        alone);
}

static uint32_t new_held(struct reader *reader) {
    uint32_t at = reader->unused;
    if (at) {
        reader->unused = reader->held[at].next;
        return at;
    }
    uint32_t added = ++reader->held_count;
    reader->held = base_reach(reader->held, &reader->held_room, added, sizeof *reader->held);
    return added;
}

static void join_group(struct reader *reader, uint32_t at, uint32_t number) {
    struct classes_group *group = &reader->classes.groups[number];
    struct reader_held *held = &reader->held[at];
    held->group = number;
    held->previous = group->last;
    held->next = 0;
    if (group->last)
        reader->held[group->last].next = at;
    else
        group->first = at;
    group->last = at;
}

static void leave_group(struct reader *reader, uint32_t at) {
    const struct reader_held *held = &reader->held[at];
    struct classes_group *group = &reader->classes.groups[held->group];
    *(held->previous ? &reader->held[held->previous].next : &group->first) = held->next;
    *(held->next ? &reader->held[held->next].previous : &group->last) = held->previous;
    classes_leave(&reader->classes, held->group);
}

static struct reader_recent *recent_of(struct reader *reader, uint32_t thread) {
    reader->recent =
        base_reach(reader->recent, &reader->recent_count, thread, sizeof *reader->recent);
    return &reader->recent[thread];
}

void reader_allocated(struct reader *reader) {
    uint64_t size;
    uint32_t class = get_class(reader, SORT_CLASSES, &size);
    if (reader->problem)
        return;
    struct reader_recent *recent = recent_of(reader, reader->thread);
    uint32_t at = new_held(reader);
    struct heap_block *block = &reader->held[at].block;
    *block = (struct heap_block){
        .number = ++reader->info->allocated,
        .size = size,
        .capacity = heap_rounded(size),
        .time = reader->time,
        .stack = reader->classes.list[class].kind.stack,
        .thread = reader->thread,
    };
    join_group(reader, at, enter_class(reader, class, block, false));
    recent->held[++recent->count % RECORDING_RECENT] = at;
    recent->numbers[recent->count % RECORDING_RECENT] = block->number;
    tell(reader, &(struct heap_event){.kind = HEAP_ALLOCATED,
                                      .thread = reader->thread,
                                      .time = reader->time,
                                      .block = block,
                                      .is_merged = reader->is_merging});
}

// One of the latest blocks of a thread; 0: it is not there any more.
static uint32_t find_recent(struct reader *reader, uint32_t thread, unsigned age) {
    const struct reader_recent *recent = recent_of(reader, thread);
    uint32_t slot = (uint32_t)(recent->count - age) % RECORDING_RECENT;
    uint32_t at = age < recent->count ? recent->held[slot] : 0;
    bool is_it =
        at && reader->held[at].group && reader->held[at].block.number == recent->numbers[slot];
    return is_it ? at : 0;
}

// ---- fetching what is needed next ----

// The number behind those that are known; 0 at the end of the column.
static uint32_t next_ahead(struct reader_ahead *ahead) {
    uint64_t number = 0;
    for (unsigned shift = 0; ahead->at < ahead->end && shift < 35; shift += 7) {
        number |= (uint64_t)(*ahead->at & 127) << shift;
        if (*ahead->at++ < 128)
            break;
    }
    return (uint32_t)number;
}

static const struct classes_group *group_ahead(const struct reader *reader, uint32_t number) {
    return number && number <= reader->classes.group_count ? &reader->classes.groups[number] : NULL;
}

// Called for each number taken from a lane's column of groups, before that. A group is fetched
// first, then what it leads to, then what that leads to.
static void fetch_ahead(struct reader *reader) {
    struct reader_ahead *ahead = &reader->ahead[(reader->lane - COLUMN_LANES) / SORT_COUNT];
    const struct classes *classes = &reader->classes;
    do {
        unsigned at = ahead->count++;
        uint32_t first = ahead->numbers[at % READER_AHEAD] = next_ahead(ahead);
        uint32_t second = ahead->numbers[(at - READER_AHEAD / 3) % READER_AHEAD];
        uint32_t third = ahead->numbers[(at - READER_AHEAD * 2 / 3) % READER_AHEAD];
        const struct classes_group *group = group_ahead(reader, first);
        if (group) {
            __builtin_prefetch(group);
            __builtin_prefetch((const char *)(group + 1) - 1);
            __builtin_prefetch(&classes->links[first]);
        }
        if ((group = group_ahead(reader, second))) {
            const struct reader_held *held = &reader->held[group->first];
            __builtin_prefetch(held);
            __builtin_prefetch((const char *)(held + 1) - 1);
            __builtin_prefetch(&classes->list[group->class]);
            __builtin_prefetch(&classes->links[classes->links[second].older]);
            __builtin_prefetch(&classes->links[classes->links[second].newer]);
        }
        if ((group = group_ahead(reader, third)) && group->count > 1)
            __builtin_prefetch(&reader->held[reader->held[group->first].next]);
    } while (ahead->count < READER_AHEAD);
}

static uint32_t find_foreign(struct reader *reader) {
    uint32_t thread = (uint32_t)reader_bounded(reader, reader->lane + SORT_FROM, reader->threads,
                                               "a thread is unknown");
    fetch_ahead(reader);
    unsigned age = (unsigned)reader_bounded(reader, reader->lane + SORT_STEPS, RECORDING_RECENT - 1,
                                            "a block is too old");
    return find_recent(reader, thread, age);
}

// The oldest block of the group at a step; 0: there is no such group.
static uint32_t find_at_step(struct reader *reader) {
    uint32_t class = (uint32_t)reader_bounded(reader, reader->lane + SORT_FROM,
                                              reader->classes.count, "a class is unknown");
    fetch_ahead(reader);
    uint32_t step = (uint32_t)reader_bounded(reader, reader->lane + SORT_STEPS, CLASSES_STEP_MAX,
                                             "a step is too long");
    uint32_t group = class ? classes_at(&reader->classes, class, step) : 0;
    return group ? reader->classes.groups[group].first : 0;
}

static uint32_t find_in_group(struct reader *reader) {
    fetch_ahead(reader);
    uint64_t group = reader_number(reader, reader->lane + SORT_STEPS);
    return classes_has(&reader->classes, group) ? reader->classes.groups[group].first : 0;
}

// Where the block is held that goes; 0 when something is wrong. It is out of its group then.
static uint32_t get_block(struct reader *reader, enum reader_way way, unsigned age) {
    uint32_t at = way == READER_RECENT    ? find_recent(reader, reader->thread, age)
                  : way == READER_FOREIGN ? find_foreign(reader)
                  : way == READER_STEP    ? find_at_step(reader)
                                          : find_in_group(reader);
    if (!at)
        reader_wrong(reader, "a block is used that is not there");
    if (reader->problem)
        return 0;
    leave_group(reader, at);
    return at;
}

void reader_freed(struct reader *reader, enum reader_way way, unsigned age) {
    uint32_t at = get_block(reader, way, age);
    if (!at)
        return;
    struct heap_event event = {.kind = HEAP_FREED,
                               .thread = reader->thread,
                               .time = reader->time,
                               .before = reader->held[at].block,
                               .is_merged = reader->is_merging};
    reader->held[at].group = 0;
    reader->held[at].next = reader->unused;
    reader->unused = at;
    reader->info->freed++;
    tell(reader, &event);
}

void reader_resized(struct reader *reader, enum reader_way way, unsigned age) {
    uint32_t at = get_block(reader, way, age);
    uint64_t size;
    uint32_t class = get_class(reader, SORT_TO, &size);
    if (reader->problem)
        return;
    struct heap_block *block = &reader->held[at].block;
    struct heap_event event = {.kind = HEAP_RESIZED,
                               .thread = reader->thread,
                               .time = reader->time,
                               .before = *block,
                               .block = block,
                               .is_merged = reader->is_merging};
    block->size = size;
    block->stack = reader->classes.list[class].kind.stack;
    block->capacity = heap_resized(block->capacity, block->size);
    join_group(reader, at, enter_class(reader, class, block, true));
    reader->info->resized++;
    tell(reader, &event);
}

// ---- merged detail ----

static void forget_recent(struct reader *reader) {
    if (reader->recent_count)
        memset(reader->recent, 0, reader->recent_count * sizeof *reader->recent);
}

void reader_step_begins(struct reader *reader) {
    if (reader->is_merging)
        reader_wrong(reader, "a step begins within another");
    reader->is_merging = true;
    forget_recent(reader);
}

void reader_step_ends(struct reader *reader) {
    struct recording_merges *merges = &reader->info->merges;
    if (!reader->is_merging)
        reader_wrong(reader, "a step ends that has not begun");
    if (reader->problem)
        return;
    reader->is_merging = false;
    forget_recent(reader);
    uint64_t length = reader->time > merges->until ? reader->time - merges->until : 0;
    merges->steps++;
    merges->longest = length > merges->longest ? length : merges->longest;
    merges->until = reader->time > merges->until ? reader->time : merges->until;
    tell(reader, &(struct heap_event){.kind = HEAP_SKIPPED, .time = reader->time});
}

// Blocks that came and went: each is told as if it had gone at once.
static void tell_merged(struct reader *reader, struct reader_merged *merged) {
    uint64_t rest = merged->bytes - merged->block.size * merged->count;
    for (uint64_t i = 0; i < merged->count; i++) {
        struct heap_block block = merged->block;
        block.number = ++reader->info->allocated;
        block.size += i + 1 == merged->count ? rest : 0;
        block.capacity = heap_rounded(block.size);
        struct heap_event event = {.kind = HEAP_ALLOCATED,
                                   .thread = reader->thread,
                                   .time = reader->time,
                                   .block = &block,
                                   .is_merged = true};
        tell(reader, &event);
        event.kind = HEAP_FREED;
        event.before = block;
        event.block = NULL;
        event.is_temporary = i < merged->temporary;
        reader->info->freed++;
        tell(reader, &event);
    }
}

void reader_merged(struct reader *reader) {
    struct reader_merged merged = {0};
    uint32_t class = get_class(reader, SORT_CLASSES, &merged.block.size);
    merged.count = reader_bounded(reader, COLUMN_REST, READER_MERGED_MAX, "too much is merged");
    merged.temporary =
        reader_bounded(reader, COLUMN_REST, merged.count, "too many blocks are temporary");
    uint64_t rest = reader_bounded(reader, COLUMN_REST, HEAP_SIZE_MAX, "a block is too large");
    if (!reader->is_merging)
        reader_wrong(reader, "something is merged outside of a step");
    if (reader->problem)
        return;
    merged.block.stack = reader->classes.list[class].kind.stack;
    merged.block.thread = reader->thread;
    merged.block.time = reader->time;
    merged.bytes = merged.block.size * merged.count + rest;
    if (reader->take_merged) {
        reader->take_merged(reader->take_context, &merged);
        reader->ordinal += 2 * merged.count;
        reader->info->allocated += merged.count;
        reader->info->freed += merged.count;
    } else {
        tell_merged(reader, &merged);
    }
}

// The sign is in the lowest bit.
static int64_t get_signed(struct reader *reader) {
    uint64_t number = reader_rest(reader);
    return (int64_t)(number >> 1 ^ -(number & 1));
}

void reader_corrected(struct reader *reader) {
    struct heap_correction correction = {.thread = reader->thread};
    correction.stack = reader_stack(reader, COLUMN_REST);
    correction.temporary = get_signed(reader);
    correction.resized = get_signed(reader);
    correction.bytes = get_signed(reader);
    if (reader->problem)
        return;
    reader->info->resized += (uint64_t)correction.resized;
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].corrected)
            reader->sinks[i].corrected(reader->sinks[i].context, &correction);
}

// ---- regions ----

static void tell_region(struct reader *reader, const struct heap_region *region) {
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].region)
            reader->sinks[i].region(reader->sinks[i].context, region);
}

void reader_mapped(struct reader *reader) {
    struct heap_region region = {.is_mapped = true, .time = reader->time, .thread = reader->thread};
    region.kind = (enum heap_region_kind)reader_bounded(reader, COLUMN_REST, HEAP_REGION_KINDS - 1,
                                                        "a region is of no kind");
    region.stack = reader_stack(reader, COLUMN_REST);
    region.bytes = reader_bounded(reader, COLUMN_REST, HEAP_SIZE_MAX, "a region is too large");
    if (reader->problem)
        return;
    region.number = ++reader->regions;
    reader->held_regions = base_reach(reader->held_regions, &reader->held_region_room,
                                      region.number, sizeof *reader->held_regions);
    reader->held_regions[region.number] = region;
    tell_region(reader, &region);
}

void reader_unmapped(struct reader *reader) {
    uint64_t age = reader_rest(reader);
    uint64_t bytes = reader_rest(reader);
    if (age >= reader->regions || bytes > reader->held_regions[reader->regions - age].bytes)
        reader_wrong(reader, "a region goes that is not there");
    if (reader->problem)
        return;
    struct heap_region *held = &reader->held_regions[reader->regions - age];
    held->bytes -= bytes;
    struct heap_region region = *held;
    region.is_mapped = false;
    region.bytes = bytes;
    region.time = reader->time;
    region.thread = reader->thread;
    tell_region(reader, &region);
}
