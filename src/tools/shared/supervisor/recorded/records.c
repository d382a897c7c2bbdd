// What the records of a ring mean, told to the sinks. Nothing in them is to be trusted.
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/shared/supervisor/recorded/source_parts.h"

// ---- telling the sinks ----

static void count_bytes(struct heap_source *source, uint64_t before, uint64_t after) {
    source->live_bytes += after - before;
    source->total_bytes += after > before ? after - before : 0;
    if (source->live_bytes > source->peak_bytes)
        source->peak_bytes = source->live_bytes;
}

static void tell(struct heap_source *source, const struct heap_event *event) {
    count_bytes(source, event->kind == HEAP_ALLOCATED ? 0 : event->before.size,
                event->kind == HEAP_FREED ? 0 : event->block->size);
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].event)
            source->sinks[i].event(source->sinks[i].context, event);
}

void heap_source_mapping(struct heap_source *source, const struct heap_mapping *mapping) {
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].mapping)
            source->sinks[i].mapping(source->sinks[i].context, mapping);
}

static uint32_t stack_of(struct heap_source *source, uint64_t id) {
    if (id == 0 || id >= WIRE_HEAP_STACKS)
        return 0;
    if (!source->stacks[id])
        source->stacks[id] = ++source->stack_count;
    return source->stacks[id];
}

static bool end_chunk(struct heap_source *source, struct heap_ring *ring, uint64_t address);

static void note_free(struct heap_source *source, uint64_t address) {
    bool is_new;
    if (source->is_noting)
        map_integers_add(&source->freed, address, &is_new);
}

void records_freed(struct heap_source *source, struct heap_ring *ring, uint64_t address) {
    struct heap_event event = {.kind = HEAP_FREED, .thread = ring->thread, .time = source->time};
    note_free(source, address);
    if (!address || !blocks_remove(&source->blocks, address, &event.before)) {
        source->counts.unknown += !end_chunk(source, ring, address);
        return;
    }
    source->counts.freed++;
    tell(source, &event);
}

void records_allocated(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                       uint64_t size, uint64_t stack) {
    if (!address || size > HEAP_SIZE_MAX) {
        source->broken = true;
        return;
    }
    struct heap_block *block = blocks_add(&source->blocks, address);
    if (!block) {
        source->counts.repaired++;
        records_freed(source, ring, address);
        block = blocks_insert(&source->blocks, address);
    }
    *block = (struct heap_block){
        .number = ++source->block_count,
        .size = size,
        .capacity = heap_rounded(size),
        .time = source->time,
        .stack = stack_of(source, stack),
        .thread = ring->thread,
    };
    source->counts.allocated++;
    ring->blocks++;
    ring->bytes += size;
    tell(source, &(struct heap_event){
                     .kind = HEAP_ALLOCATED,
                     .thread = ring->thread,
                     .time = source->time,
                     .block = block,
                 });
}

static void on_resize_began(struct heap_source *source, struct heap_ring *ring, uint64_t address) {
    note_free(source, address);
    ring->resizing = address && blocks_remove(&source->blocks, address, &ring->moving);
    ring->moving_address = address;
    source->counts.unknown += !ring->resizing;
}

static void on_resize_ended(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                            uint64_t size, uint64_t stack) {
    if (!ring->resizing) {
        if (address != 0 && address != WIRE_HEAP_RELEASED)
            records_allocated(source, ring, address, size, stack);
        return;
    }
    ring->resizing = false;
    uint64_t to = address ? address : ring->moving_address;
    if ((address && size > HEAP_SIZE_MAX) ||
        (address != WIRE_HEAP_RELEASED && blocks_find(&source->blocks, to))) {
        source->broken = true;
        return;
    }
    struct heap_event event = {
        .kind = HEAP_FREED, .thread = ring->thread, .time = source->time, .before = ring->moving};
    if (address == WIRE_HEAP_RELEASED) {
        source->counts.freed++;
        tell(source, &event);
        return;
    }
    event.kind = HEAP_RESIZED;
    event.block = blocks_insert(&source->blocks, to);
    *event.block = ring->moving;
    if (!address)
        return;
    event.block->size = size;
    event.block->capacity = heap_resized(event.block->capacity, size);
    event.block->stack = stack_of(source, stack);
    source->counts.resized++;
    ring->blocks++;
    ring->bytes += size > event.before.size ? size - event.before.size : 0;
    tell(source, &event);
}

// Puts the marks of an interpreter's frames behind the pcs; how many addresses these make. A frame
// that is not known would shift the others: then there are none.
static size_t add_marks(struct heap_source *source, uint64_t *stack, size_t pc_count,
                        const uint64_t *words, size_t frame_count) {
    struct python_frame frame;
    for (size_t i = 0; i < frame_count; i++) {
        memcpy(&frame, words + i * sizeof frame / sizeof *words, sizeof frame);
        stack[pc_count + i] = source->interpreter->mark(source->interpreter->context, &frame);
        if (!stack[pc_count + i])
            return pc_count;
    }
    return pc_count + frame_count;
}

// The number of frames was read twice; only what was taken counts.
static void on_stack(struct heap_source *source, uint64_t word, const uint64_t *words,
                     size_t count) {
    enum { FRAME_WORDS = sizeof(struct python_frame) / sizeof(uint64_t) };
    uint64_t stack[WIRE_HEAP_STACK_WORDS], merged[WIRE_HEAP_STACK_WORDS];
    uint32_t id = stack_of(source, (uint32_t)word);
    size_t frames = word >> 49;
    bool is_cut = word >> 48 & 1;
    if (frames > WIRE_HEAP_PYTHON_FRAMES || frames * FRAME_WORDS > count ||
        count - frames * FRAME_WORDS > WIRE_HEAP_FRAMES) {
        source->broken = true;
        return;
    }
    count -= frames * FRAME_WORDS;
    if (frames && source->interpreter) {
        memcpy(stack, words, count * sizeof *stack);
        size_t all = add_marks(source, stack, count, words + count, frames);
        count = interpreted_put(stack, all, is_cut || frames == WIRE_HEAP_PYTHON_FRAMES,
                                source->interpreter->is_call, source->interpreter->context, merged);
        words = merged;
    }
    is_cut |= count > HEAP_FRAMES_MAX;
    count = count < HEAP_FRAMES_MAX ? count : HEAP_FRAMES_MAX;
    for (size_t i = 0; id && i < source->sink_count; i++)
        if (source->sinks[i].stack)
            source->sinks[i].stack(source->sinks[i].context, id, words, count, is_cut);
}

static void on_code(struct heap_source *source, uint64_t size, const uint64_t *words, size_t room) {
    if (size > room)
        source->broken = true;
    else if (source->interpreter)
        source->interpreter->code(source->interpreter->context, (const struct python_code *)words,
                                  size);
}

static void on_thread(struct heap_source *source, struct heap_ring *ring, uint64_t tid) {
    ring->thread = ++source->thread_count;
    ring->tid = (int)tid;
    ring->cpu_time = ring->ran = 0;
    ring->name[0] = 0;
    ring->blocks = ring->bytes = 0;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].thread)
            source->sinks[i].thread(source->sinks[i].context, ring->thread, (int)tid);
}

static void tell_state(struct heap_source *source, const struct heap_ring *ring,
                       enum heap_thread_state state) {
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].state)
            source->sinks[i].state(source->sinks[i].context, ring->thread, state, source->time);
}

void records_thread_ended(struct heap_source *source, struct heap_ring *ring) {
    if (!ring->tid)
        return;
    ring->tid = 0;
    tell_state(source, ring, HEAP_THREAD_ENDED);
}

void heap_source_watch_threads(struct heap_source *source,
                               uint64_t (*cpu_time)(void *context, int tid), void *context) {
    for (uint32_t i = 0; i < source->ring_count && !source->broken; i++) {
        struct heap_ring *ring = &source->rings[i];
        if (!ring->tid ||
            (ring->ran && source->time - ring->ran < source->time / HEAP_SOURCE_RAN_SHARE))
            continue;
        uint64_t time = cpu_time(context, ring->tid);
        if (!time || time == ring->cpu_time)
            continue;
        ring->cpu_time = time;
        ring->ran = source->time;
        tell_state(source, ring, HEAP_THREAD_RAN);
    }
}

// ---- blocks from before ----

void heap_source_note_frees(struct heap_source *source, bool is_noting) {
    source->is_noting = is_noting;
    if (!is_noting) {
        map_integers_free(&source->freed);
        source->freed = (struct map_integers){0};
    }
}

uint32_t heap_source_new_stack(struct heap_source *source, const uint64_t *pcs, size_t count) {
    uint32_t id = ++source->stack_count;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].stack)
            source->sinks[i].stack(source->sinks[i].context, id, pcs, count, false);
    return id;
}

bool heap_source_add_block(struct heap_source *source, uint64_t address, uint64_t size,
                           uint32_t stack) {
    if (!address || size > HEAP_SIZE_MAX || map_integers_find(&source->freed, address) != MAP_NONE)
        return false;
    struct heap_block *block = blocks_add(&source->blocks, address);
    if (!block)
        return false;
    *block = (struct heap_block){
        .number = ++source->block_count,
        .size = size,
        .capacity = heap_rounded(size),
        .time = source->time,
        .stack = stack,
    };
    source->counts.allocated++;
    tell(source,
         &(struct heap_event){.kind = HEAP_ALLOCATED, .time = source->time, .block = block});
    return true;
}

// ---- regions, names, samples ----

struct region_teller {
    struct heap_source *source;
    struct heap_ring *ring;
};

static void tell_region(void *context, const struct heap_region *region) {
    const struct region_teller *teller = context;
    struct heap_source *source = teller->source;
    struct heap_region told = *region;
    told.time = source->time;
    told.thread = teller->ring->thread;
    if (!told.is_mapped)
        teller->ring->unmapped = told.kind;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].region)
            source->sinks[i].region(source->sinks[i].context, &told);
}

static void on_unmapped(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                        uint64_t size) {
    struct region_teller teller = {source, ring};
    ring->unmapped = HEAP_REGION_ANONYMOUS;
    regions_unmap(&source->regions, address, size, tell_region, &teller);
}

static void on_mapped(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                      uint64_t size, uint64_t word) {
    struct region_teller teller = {source, ring};
    uint64_t kind = word >> 32;
    if (size == 0 || size > HEAP_SIZE_MAX || size > UINT64_MAX - address ||
        kind > WIRE_HEAP_MOVED) {
        source->broken = true;
        return;
    }
    regions_map(&source->regions, address, size,
                kind == WIRE_HEAP_MOVED ? ring->unmapped : (enum heap_region_kind)kind,
                stack_of(source, (uint32_t)word), tell_region, &teller);
}

static void on_name(struct heap_source *source, uint64_t index, const uint64_t *words) {
    char name[17] = {0};
    memcpy(name, words, 16);
    struct heap_ring *ring = index < WIRE_HEAP_RINGS ? &source->rings[index] : NULL;
    if (!ring || !ring->thread || !name[0] || strcmp(ring->name, name) == 0)
        return;
    memcpy(ring->name, name, sizeof name);
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].name)
            source->sinks[i].name(source->sinks[i].context, ring->thread, name);
}

void heap_source_sample(struct heap_source *source, const struct heap_sample *sample) {
    struct heap_sample *last = &source->sample;
    // The target's own word may come before the kernel's that was asked earlier.
    if (sample->resident > HEAP_SIZE_MAX || sample->minor_faults < last->minor_faults ||
        sample->major_faults < last->major_faults)
        return;
    *last = *sample;
    last->time = source->time;
    if (last->anonymous > last->resident)
        last->anonymous = HEAP_UNKNOWN;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].sample)
            source->sinks[i].sample(source->sinks[i].context, last);
}

static void on_moment(struct heap_source *source, uint64_t instructions, uint64_t stacks,
                      bool falls) {
    struct heap_moment moment = {source->time, instructions, stacks, falls};
    if (stacks > HEAP_SIZE_MAX) {
        source->broken = true;
        return;
    }
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].moment)
            source->sinks[i].moment(source->sinks[i].context, &moment);
}

// ---- what the program says and asks ----

_Static_assert((int)HEAP_MARK_SNAPSHOT == WIRE_HEAP_SNAPSHOT &&
                   (int)HEAP_MARK_SCOPE_BEGAN == WIRE_HEAP_SCOPE_BEGAN &&
                   (int)HEAP_MARK_SCOPE_ENDED == WIRE_HEAP_SCOPE_ENDED,
               "kinds are one and the same");

static void on_mark(struct heap_source *source, struct heap_ring *ring, uint64_t word,
                    const uint64_t *words, size_t room) {
    char name[WIRE_HEAP_NAME_MAX + 1] = {0};
    uint64_t size = word >> 32 & 0xffff;
    uint32_t kind = (uint32_t)word;
    if (kind >= HEAP_MARK_KINDS || size > WIRE_HEAP_NAME_MAX || size > room) {
        source->broken = true;
        return;
    }
    memcpy(name, words, size);
    struct heap_mark mark = {
        .kind = (enum heap_mark_kind)kind, .thread = ring->thread, .time = source->time};
    mark.name = name;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].mark)
            source->sinks[i].mark(source->sinks[i].context, &mark);
}

static void on_asked(struct heap_source *source, struct heap_ring *ring, uint64_t number) {
    const struct heap_source_counts *counts = &source->counts;
    const uint64_t answers[WIRE_HEAP_ANSWERS] = {
        [WIRE_HEAP_LIVE_BYTES] = source->live_bytes,
        [WIRE_HEAP_LIVE_BLOCKS] = counts->allocated - counts->freed,
        [WIRE_HEAP_PEAK_BYTES] = source->peak_bytes,
        [WIRE_HEAP_TOTAL_BYTES] = source->total_bytes,
        [WIRE_HEAP_TOTAL_BLOCKS] = counts->allocated,
        [WIRE_HEAP_RELEASES] = counts->freed,
        [WIRE_HEAP_THREAD_BYTES] = ring->bytes,
        [WIRE_HEAP_THREAD_BLOCKS] = ring->blocks,
    };
    for (unsigned i = 0; i < WIRE_HEAP_ANSWERS; i++)
        atomic_store_explicit(&ring->shared->answers[i], answers[i], memory_order_relaxed);
    atomic_store(&ring->shared->answered, (uint32_t)number);
    syscall(SYS_futex, &ring->shared->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// The memory is the program's to divide from now on, as if it had mapped it: what it gives out of
// it are the blocks. Its release ends that.
static void on_chunk(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                     uint64_t size) {
    struct heap_event event = {.kind = HEAP_FREED, .thread = ring->thread, .time = source->time};
    struct region_teller teller = {source, ring};
    if (!address || !size || size > HEAP_SIZE_MAX || size > UINT64_MAX - address) {
        source->broken = true;
        return;
    }
    if (!blocks_remove(&source->blocks, address, &event.before))
        return;
    source->counts.freed++;
    tell(source, &event);
    regions_map(&source->regions, address, event.before.size ? event.before.size : size,
                HEAP_REGION_ANONYMOUS, event.before.stack, tell_region, &teller);
    *blocks_insert(&source->chunks, address) = event.before;
}

static bool end_chunk(struct heap_source *source, struct heap_ring *ring, uint64_t address) {
    struct heap_block chunk;
    struct region_teller teller = {source, ring};
    if (!address || !blocks_remove(&source->chunks, address, &chunk))
        return false;
    regions_unmap(&source->regions, address, chunk.size ? chunk.size : 1, tell_region, &teller);
    return true;
}

// ---- all of them ----

void records_take(struct heap_source *source, struct heap_ring *ring, unsigned kind,
                  const uint64_t *words, uint64_t count) {
    switch (kind) {
    case WIRE_HEAP_RESIZE_BEGAN:
        on_resize_began(source, ring, words[1]);
        break;
    case WIRE_HEAP_RESIZE_ENDED:
        on_resize_ended(source, ring, words[1], words[2], words[3]);
        break;
    case WIRE_HEAP_STACK:
        on_stack(source, words[1], words + 2, count - 2);
        break;
    case WIRE_HEAP_CODE:
        on_code(source, words[1], words + 2, (count - 2) * sizeof *words);
        break;
    case WIRE_HEAP_THREAD:
        on_thread(source, ring, words[1]);
        break;
    case WIRE_HEAP_MAPPED:
        on_mapped(source, ring, words[1], words[2], words[3]);
        break;
    case WIRE_HEAP_UNMAPPED:
        on_unmapped(source, ring, words[1], words[2]);
        break;
    case WIRE_HEAP_NAME:
        on_name(source, words[1], words + 2);
        break;
    case WIRE_HEAP_SAMPLE:
        heap_source_sample(source, &(struct heap_sample){.resident = words[1],
                                                         .minor_faults = words[2],
                                                         .major_faults = words[3],
                                                         .anonymous = words[4]});
        break;
    case WIRE_HEAP_MOMENT:
    case WIRE_HEAP_DEPTH:
        on_moment(source, words[1], words[2], kind == WIRE_HEAP_DEPTH);
        break;
    case WIRE_HEAP_MARK:
        on_mark(source, ring, words[1], words + 2, (count - 2) * sizeof *words);
        break;
    case WIRE_HEAP_ASKED:
        on_asked(source, ring, words[1]);
        break;
    case WIRE_HEAP_CHUNK:
        on_chunk(source, ring, words[1], words[2]);
        break;
    }
}
