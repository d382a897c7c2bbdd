#include "supervisor/heap_source.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/text.h"
#include "profile/blocks.h"
#include "profile/regions.h"
#include "wire/wire.h"
#include "wire/wire_heap.h"

// So many words are taken before the writer, who may be waiting for room, is told.
#define GIVE_WORDS (WIRE_HEAP_RING_WORDS / 8)

#define NO_CLOCK UINT64_MAX

// What is known of a ring.
struct ring {
    struct wire_heap_ring *shared;
    uint64_t head; // words taken
    uint64_t tail; // words that are there, as of this round
    uint64_t next; // clock of the record at head; NO_CLOCK: none
    uint32_t thread;
    bool resizing; // the block in `moving` is between its two records
    uint64_t moving_address;
    struct heap_block moving;
    enum heap_region_kind unmapped; // what the last UNMAPPED was about
    char name[17];
    uint64_t blocks, bytes; // that its thread has allocated; resizes count for what they add
};

struct heap_source {
    char *area;
    struct wire_heap_header *header;
    uint32_t clock; // as checked: the header may change under us
    uint64_t clock_start;
    uint64_t first_clock, first_time; // a pair to convert by
    double scale;                     // nanoseconds per tick
    struct ring *rings;
    uint32_t ring_count;
    uint32_t *order; // rings that have records, a binary heap by `next`
    uint32_t order_count;
    struct blocks blocks;
    struct blocks chunks; // blocks that serve allocators of the program's own
    uint32_t *stacks; // the area's numbers to ours; 0: not seen
    uint32_t stack_count;
    uint32_t thread_count;
    uint64_t block_count;
    uint64_t live_bytes, peak_bytes, total_bytes;
    uint64_t time; // of the event in hand
    struct regions regions;
    struct heap_sink sinks[HEAP_SOURCE_SINKS];
    size_t sink_count;
    struct heap_source_counts counts;
    struct heap_sample sample; // the last one
    bool broken;
};

// ---- time ----

static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t clock_now(const struct heap_source *source) {
    if (source->clock == WIRE_HEAP_CLOCK_MONOTONIC)
        return monotonic();
    _mm_mfence();
    _mm_lfence();
    return __rdtsc();
}

// The longer the run, the better the scale is known.
static void calibrate(struct heap_source *source) {
    uint64_t ticks = clock_now(source) - source->first_clock;
    uint64_t time = monotonic() - source->first_time;
    if (source->clock == WIRE_HEAP_CLOCK_TSC && time > 1000000)
        source->scale = (double)time / (double)ticks;
}

// Never before the last one told, also when the scale has just been corrected.
static uint64_t time_of(const struct heap_source *source, uint64_t clock) {
    uint64_t time = clock > source->clock_start
                        ? (uint64_t)((double)(clock - source->clock_start) * source->scale)
                        : 0;
    return time > source->time ? time : source->time;
}

// ---- opening ----

static bool is_sealed(int fd, uint64_t size) {
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && lseek(fd, 0, SEEK_END) == (off_t)size;
}

struct heap_source *heap_source_open(int fd, uint64_t size, const char **problem) {
    char *area = MAP_FAILED;
    *problem = "it is not of the expected form";
    if (size == WIRE_HEAP_SIZE && is_sealed(fd, size)) {
        area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        *problem = "it cannot be mapped";
    }
    close(fd);
    if (area == MAP_FAILED)
        return NULL;
    struct heap_source *source = base_allocate(sizeof *source);
    *source = (struct heap_source){.area = area, .header = (struct wire_heap_header *)area};
    source->clock = source->header->clock;
    source->clock_start = source->header->clock_start;
    source->first_clock = clock_now(source);
    source->first_time = monotonic();
    source->scale = 1;
    if (source->clock == WIRE_HEAP_CLOCK_TSC) {
        // A first estimate; the drains improve it.
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
        calibrate(source);
    }
    source->rings = base_allocate(WIRE_HEAP_RINGS * sizeof *source->rings);
    memset(source->rings, 0, WIRE_HEAP_RINGS * sizeof *source->rings);
    source->order = base_allocate(WIRE_HEAP_RINGS * sizeof *source->order);
    source->stacks = calloc(WIRE_HEAP_STACKS, sizeof *source->stacks);
    if (!source->stacks)
        source->broken = true;
    *problem = NULL;
    return source;
}

void heap_source_add(struct heap_source *source, const struct heap_sink *sink) {
    source->sinks[source->sink_count++] = *sink;
}

// Nobody reads any more: a thread that waits for room must not wait for ever.
static void give_up(struct heap_source *source) {
    atomic_store(&source->header->abandoned, 1);
    for (uint32_t i = 0; i < source->ring_count; i++)
        if (source->rings[i].shared)
            syscall(SYS_futex, &source->rings[i].shared->taken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void heap_source_free(struct heap_source *source) {
    give_up(source);
    munmap(source->area, WIRE_HEAP_SIZE);
    blocks_free(&source->blocks);
    blocks_free(&source->chunks);
    regions_free(&source->regions);
    free(source->rings);
    free(source->order);
    free(source->stacks);
    free(source);
}

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

static bool end_chunk(struct heap_source *source, struct ring *ring, uint64_t address);

static void on_freed(struct heap_source *source, struct ring *ring, uint64_t address) {
    struct heap_event event = {.kind = HEAP_FREED, .thread = ring->thread, .time = source->time};
    if (!address || !blocks_remove(&source->blocks, address, &event.before)) {
        source->counts.unknown += !end_chunk(source, ring, address);
        return;
    }
    source->counts.freed++;
    tell(source, &event);
}

static void on_allocated(struct heap_source *source, struct ring *ring, uint64_t address,
                         uint64_t size, uint64_t stack) {
    if (!address || size > HEAP_SIZE_MAX) {
        source->broken = true;
        return;
    }
    if (blocks_find(&source->blocks, address)) {
        source->counts.repaired++;
        on_freed(source, ring, address);
    }
    struct heap_block *block = blocks_insert(&source->blocks, address);
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

static void on_resize_began(struct heap_source *source, struct ring *ring, uint64_t address) {
    ring->resizing = address && blocks_remove(&source->blocks, address, &ring->moving);
    ring->moving_address = address;
    source->counts.unknown += !ring->resizing;
}

static void on_resize_ended(struct heap_source *source, struct ring *ring, uint64_t address,
                            uint64_t size, uint64_t stack) {
    if (!ring->resizing) {
        if (address != 0 && address != WIRE_HEAP_RELEASED)
            on_allocated(source, ring, address, size, stack);
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

static void on_stack(struct heap_source *source, uint64_t word, const uint64_t *pcs) {
    uint32_t id = stack_of(source, (uint32_t)word);
    for (size_t i = 0; id && i < source->sink_count; i++)
        if (source->sinks[i].stack)
            source->sinks[i].stack(source->sinks[i].context, id, pcs, (word >> 32) & 0xffff,
                                   (word >> 48) & 1);
}

static void on_thread(struct heap_source *source, struct ring *ring, uint64_t tid) {
    ring->thread = ++source->thread_count;
    ring->name[0] = 0;
    ring->blocks = ring->bytes = 0;
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].thread)
            source->sinks[i].thread(source->sinks[i].context, ring->thread, (int)tid);
}

// ---- regions, names, samples ----

struct region_teller {
    struct heap_source *source;
    struct ring *ring;
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

static void on_unmapped(struct heap_source *source, struct ring *ring, uint64_t address,
                        uint64_t size) {
    struct region_teller teller = {source, ring};
    ring->unmapped = HEAP_REGION_ANONYMOUS;
    regions_unmap(&source->regions, address, size, tell_region, &teller);
}

static void on_mapped(struct heap_source *source, struct ring *ring, uint64_t address,
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
    struct ring *ring = index < WIRE_HEAP_RINGS ? &source->rings[index] : NULL;
    if (!ring || !ring->thread || !name[0] || strcmp(ring->name, name) == 0)
        return;
    memcpy(ring->name, name, sizeof name);
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].name)
            source->sinks[i].name(source->sinks[i].context, ring->thread, name);
}

void heap_source_sample(struct heap_source *source, uint64_t resident, uint64_t minor_faults,
                        uint64_t major_faults) {
    struct heap_sample *last = &source->sample;
    // The target's own word may come before the kernel's that was asked earlier.
    if (resident > HEAP_SIZE_MAX || minor_faults < last->minor_faults ||
        major_faults < last->major_faults)
        return;
    *last = (struct heap_sample){source->time, resident, minor_faults, major_faults};
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

static void on_mark(struct heap_source *source, struct ring *ring, uint64_t word,
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

static void on_asked(struct heap_source *source, struct ring *ring, uint64_t number) {
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

// The memory is the program's to divide from now on, as if it had mapped it: what it gives out of it
// are the blocks. Its release ends that.
static void on_chunk(struct heap_source *source, struct ring *ring, uint64_t address,
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

static bool end_chunk(struct heap_source *source, struct ring *ring, uint64_t address) {
    struct heap_block chunk;
    struct region_teller teller = {source, ring};
    if (!address || !blocks_remove(&source->chunks, address, &chunk))
        return false;
    regions_unmap(&source->regions, address, chunk.size ? chunk.size : 1, tell_region, &teller);
    return true;
}

// Times that the target cannot know are never reached.
void heap_source_gate(struct heap_source *source, uint64_t total, uint64_t instructions,
                      uint64_t time) {
    uint64_t clock = time == UINT64_MAX || source->scale <= 0
                         ? UINT64_MAX
                         : source->clock_start + (uint64_t)((double)time / source->scale);
    atomic_store_explicit(&source->header->peak, total, memory_order_relaxed);
    atomic_store_explicit(&source->header->next_instructions, instructions, memory_order_relaxed);
    atomic_store_explicit(&source->header->next_clock, clock, memory_order_relaxed);
}

// ---- reading a ring ----

static uint64_t word_at(const struct ring *ring, uint64_t at) {
    return __atomic_load_n(&ring->shared->words[at % WIRE_HEAP_RING_WORDS], __ATOMIC_RELAXED);
}

static void look_ahead(struct ring *ring) {
    ring->next =
        ring->head < ring->tail ? word_at(ring, ring->head) >> WIRE_HEAP_KIND_BITS : NO_CLOCK;
}

// Takes the record at the head.
static void take_record(struct heap_source *source, struct ring *ring) {
    static const uint8_t words_of[] = {
        [WIRE_HEAP_ALLOCATED] = 4,    [WIRE_HEAP_FREED] = 2,    [WIRE_HEAP_RESIZE_BEGAN] = 2,
        [WIRE_HEAP_RESIZE_ENDED] = 4, [WIRE_HEAP_STACK] = 2,    [WIRE_HEAP_THREAD] = 2,
        [WIRE_HEAP_MAPPED] = 4,       [WIRE_HEAP_UNMAPPED] = 3, [WIRE_HEAP_NAME] = 4,
        [WIRE_HEAP_SAMPLE] = 4,       [WIRE_HEAP_MOMENT] = 3,   [WIRE_HEAP_DEPTH] = 3,
        [WIRE_HEAP_MARK] = 2,         [WIRE_HEAP_ASKED] = 2,    [WIRE_HEAP_CHUNK] = 3};
    uint64_t words[4 + WIRE_HEAP_FRAMES];
    unsigned kind = word_at(ring, ring->head) & ((1u << WIRE_HEAP_KIND_BITS) - 1);
    uint64_t there = ring->tail - ring->head;
    uint64_t count = kind < sizeof words_of ? words_of[kind] : 0;
    if (kind == WIRE_HEAP_STACK && there >= 2)
        count += (word_at(ring, ring->head + 1) >> 32) & 0xffff;
    if (kind == WIRE_HEAP_MARK && there >= 2)
        count += ((word_at(ring, ring->head + 1) >> 32 & 0xffff) + 7) / 8;
    if (count == 0 || count > there || count > sizeof words / sizeof *words) {
        source->broken = true;
        return;
    }
    for (uint64_t i = 1; i < count; i++)
        words[i] = word_at(ring, ring->head + i);
    source->time = time_of(source, ring->next);
    ring->head += count;
    switch (kind) {
    case WIRE_HEAP_ALLOCATED:
        on_allocated(source, ring, words[1], words[2], words[3]);
        break;
    case WIRE_HEAP_FREED:
        on_freed(source, ring, words[1]);
        break;
    case WIRE_HEAP_RESIZE_BEGAN:
        on_resize_began(source, ring, words[1]);
        break;
    case WIRE_HEAP_RESIZE_ENDED:
        on_resize_ended(source, ring, words[1], words[2], words[3]);
        break;
    case WIRE_HEAP_STACK:
        // The number of frames was read twice; only what was taken counts.
        on_stack(source, (words[1] & ~(0xffffull << 32)) | (count - 2) << 32, words + 2);
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
        heap_source_sample(source, words[1], words[2], words[3]);
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
    look_ahead(ring);
}

static void give_back(struct ring *ring) {
    struct wire_heap_ring *shared = ring->shared;
    if (atomic_load_explicit(&shared->head, memory_order_relaxed) == ring->head)
        return;
    atomic_store_explicit(&shared->head, ring->head, memory_order_release);
    atomic_store(&shared->taken, (uint32_t)ring->head);
    // A writer that waits is woken when there is enough room for it to be worth while.
    if (atomic_load(&shared->waiting) && ring->tail - ring->head <= WIRE_HEAP_RING_WORDS / 2)
        syscall(SYS_futex, &shared->taken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// A ring whose thread has ended and said all it had to say serves another one.
static void recycle(struct ring *ring) {
    if (ring->head == ring->tail && atomic_load(&ring->shared->state) == WIRE_HEAP_ENDED &&
        atomic_load(&ring->shared->tail) == ring->head)
        atomic_store(&ring->shared->state, WIRE_HEAP_FREE);
}

// ---- putting rings in order ----

static bool earlier(const struct heap_source *source, uint32_t a, uint32_t b) {
    return source->rings[source->order[a]].next < source->rings[source->order[b]].next;
}

static void sift_down(struct heap_source *source, uint32_t at) {
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < source->order_count && earlier(source, child, least))
                least = child;
        if (least == at)
            return;
        uint32_t swap = source->order[at];
        source->order[at] = source->order[least];
        source->order[least] = swap;
        at = least;
    }
}

// The clock of the earliest record of all rings but the first in order.
static uint64_t runner_up(const struct heap_source *source) {
    uint64_t clock = NO_CLOCK;
    for (uint32_t i = 1; i < 3 && i < source->order_count; i++)
        if (source->rings[source->order[i]].next < clock)
            clock = source->rings[source->order[i]].next;
    return clock;
}

static void take_in_order(struct heap_source *source, uint64_t horizon) {
    for (uint32_t i = source->order_count / 2; i-- > 0;)
        sift_down(source, i);
    while (source->order_count && !source->broken) {
        struct ring *ring = &source->rings[source->order[0]];
        uint64_t until = runner_up(source);
        if (until > horizon)
            until = horizon;
        if (ring->next > horizon)
            return;
        uint64_t given = ring->head;
        do {
            take_record(source, ring);
            if (ring->head - given >= GIVE_WORDS) {
                give_back(ring);
                given = ring->head;
            }
        } while (ring->next <= until && !source->broken);
        give_back(ring);
        if (ring->next == NO_CLOCK)
            source->order[0] = source->order[--source->order_count];
        sift_down(source, 0);
    }
}

size_t heap_source_drain(struct heap_source *source, bool last) {
    if (source->broken)
        return 0;
    calibrate(source);
    uint64_t now = clock_now(source);
    uint32_t count = atomic_load(&source->header->ring_count);
    size_t words = 0;
    source->ring_count = count < WIRE_HEAP_RINGS ? count : WIRE_HEAP_RINGS;
    source->order_count = 0;
    for (uint32_t i = 0; i < source->ring_count; i++) {
        struct ring *ring = &source->rings[i];
        ring->shared = (struct wire_heap_ring *)(source->area + WIRE_HEAP_RING_AT(i));
        ring->tail = atomic_load_explicit(&ring->shared->tail, memory_order_acquire);
        if (ring->tail - ring->head > WIRE_HEAP_RING_WORDS) {
            source->broken = true;
            break;
        }
        words += ring->tail - ring->head;
        look_ahead(ring);
        if (ring->next != NO_CLOCK)
            source->order[source->order_count++] = i;
    }
    take_in_order(source, last ? NO_CLOCK - 1 : now);
    if (!last)
        source->time = time_of(source, now);
    for (uint32_t i = 0; i < source->ring_count && !source->broken; i++)
        recycle(&source->rings[i]);
    source->counts.missed = atomic_load(&source->header->missed);
    if (source->broken)
        give_up(source);
    return words;
}

void heap_source_end(struct heap_source *source) {
    calibrate(source);
    uint64_t time = time_of(source, clock_now(source));
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].end)
            source->sinks[i].end(source->sinks[i].context, time);
}

struct heap_source_counts heap_source_counts(const struct heap_source *source) {
    return source->counts;
}

bool heap_source_broken(const struct heap_source *source) {
    return source->broken;
}

// ---- live blocks ----

void heap_source_blocks(const struct heap_source *source,
                        void (*block)(void *context, uint64_t address,
                                      const struct heap_block *block),
                        void *context) {
    for (size_t i = 0; i < source->blocks.room; i++)
        if (source->blocks.slots[i].key)
            block(context, source->blocks.slots[i].key, &source->blocks.slots[i].block);
    // A block that is being resized is alive, at its old place as far as anybody knows.
    for (uint32_t i = 0; i < WIRE_HEAP_RINGS; i++)
        if (source->rings[i].resizing)
            block(context, source->rings[i].moving_address, &source->rings[i].moving);
}

void heap_source_change(struct heap_source *source,
                        void (*change)(void *context, struct heap_block *block), void *context) {
    for (size_t i = 0; i < source->blocks.room; i++)
        if (source->blocks.slots[i].key)
            change(context, &source->blocks.slots[i].block);
    for (uint32_t i = 0; i < WIRE_HEAP_RINGS; i++)
        if (source->rings[i].resizing)
            change(context, &source->rings[i].moving);
}

void heap_source_memory(const struct heap_source *source,
                        void (*piece)(void *context, uint64_t start, uint64_t end, bool is_own),
                        void *context) {
    for (size_t i = 0; i < source->regions.count; i++)
        piece(context, source->regions.pieces[i].start, source->regions.pieces[i].end, false);
    uint64_t size = source->header->own_size;
    for (uint32_t i = 0; i < source->ring_count; i++) {
        uint64_t start = source->rings[i].shared ? source->rings[i].shared->own : 0;
        if (start && size < HEAP_SIZE_MAX && start < HEAP_SIZE_MAX)
            piece(context, start, start + size, true);
    }
}

bool heap_source_is_libc(const struct heap_source *source) {
    return source->header->libc_heap;
}

void heap_source_answer(struct heap_source *source) {
    atomic_store(&source->header->answered, 1);
    syscall(SYS_futex, &source->header->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
