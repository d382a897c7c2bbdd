// Where slabs, huge blocks and heaps come from and go to: what happens seldom.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/shadow/shadow.h"

enum {
    PAGE = 4096,
    UNIT = 1 << UNIT_BITS,
    SEGMENT = 1 << SEGMENT_BITS,
    USUAL_UNITS = 4,  // of a slab; the first of a class has one if that holds enough slots
    FEWEST_SLOTS = 4, // in a slab of a class
    POOL = 256 * 1024,
};

_Atomic(union cell *) *heap_cells;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *segments; // with free units
static unsigned empty_segments;  // of these, without any slab
static unsigned mapped_segments;
static struct slab *free_slabs[CLASSES];
static struct huge *free_huges;
static struct segment *free_segments; // not mapped
static struct heap *heaps;
static uint64_t first_cell = UINT64_MAX, last_cell;

void segments_lock(void) {
    pthread_mutex_lock(&lock);
}

void segments_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void segments_start(void) {
    if (heap_cells)
        return;
    size_t size = sizeof *heap_cells << CELL_BITS;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    heap_cells = memory;
}

// The other threads' heaps stay as they were at that moment, perhaps in the middle of a change:
// their slabs are not used again, their blocks can be found and freed.
void segments_forked(void) {
    pthread_mutex_init(&lock, NULL);
    for (struct heap *heap = heaps; heap; heap = heap->next)
        if (heap != own_heap)
            heap->is_idle = false;
    atomic_store(&heap_freed_volume, own_heap ? own_heap->published_volume : 0);
    atomic_store(&heap_count, own_heap ? 1 : 0);
    atomic_store(&heap_orphans, 0);
}

struct heap *heap_first(void) {
    return heaps;
}

void cells_in_use(uint64_t *first, uint64_t *last) {
    *first = first_cell;
    *last = last_cell;
}

// Memory for structures that are never given back. What is touched late or never has a pool of its
// own, so that it uses no page before.
struct pool {
    char *at, *end;
};

static struct pool early, late;

// Under the lock.
static void *pool_take(struct pool *pool, size_t size) {
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(pool->end - pool->at) < size) {
        size_t more = size > POOL / 4 ? (size + PAGE - 1) & ~(size_t)(PAGE - 1) : POOL;
        void *memory = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        if (more != POOL)
            return memory;
        pool->at = memory;
        pool->end = pool->at + more;
    }
    void *result = pool->at;
    pool->at += size;
    return result;
}

static void set_cells(uint64_t start, uint64_t end, union cell *cell) {
    uint64_t first = start >> SEGMENT_BITS, last = (end - 1) >> SEGMENT_BITS;
    for (uint64_t i = first; i <= last; i++)
        atomic_store_explicit(&heap_cells[i], cell, memory_order_release);
    if (cell && first < first_cell)
        first_cell = first;
    if (cell && last > last_cell)
        last_cell = last;
}

static bool is_in_reach(uint64_t start, size_t size) {
    return start && start + size <= (uint64_t)1 << (SEGMENT_BITS + CELL_BITS);
}

// ---- units -------------------------------------------------------------------------------------

static bool is_taken(const struct segment *segment, unsigned unit) {
    return segment->taken[unit / 64] >> unit % 64 & 1;
}

// First fit. UNITS: no such run.
static unsigned find_run(const struct segment *segment, unsigned units) {
    unsigned run = 0;
    for (unsigned unit = 0; unit < UNITS; unit++) {
        if (unit % 64 == 0 && !~segment->taken[unit / 64]) {
            unit += 63;
            run = 0;
            continue;
        }
        run = is_taken(segment, unit) ? 0 : run + 1;
        if (run == units)
            return unit + 1 - units;
    }
    return UNITS;
}

static void mark_units(struct segment *segment, unsigned first, unsigned units, bool taken) {
    for (unsigned unit = first; unit < first + units; unit++)
        segment->taken[unit / 64] ^= (uint64_t)1 << unit % 64;
    segment->free_units += taken ? -units : units;
}

static uint64_t take_units(unsigned units, struct segment **in) {
    for (struct segment **at = &segments; *at; at = &(*at)->next) {
        struct segment *segment = *at;
        unsigned first = segment->free_units < units ? UNITS : find_run(segment, units);
        if (first == UNITS)
            continue;
        if (segment->free_units == UNITS)
            empty_segments--;
        mark_units(segment, first, units, true);
        if (!segment->free_units)
            *at = segment->next;
        *in = segment;
        return segment->start + ((uint64_t)first << UNIT_BITS);
    }
    return 0;
}

static bool add_segment(uint64_t start) {
    struct segment *segment = free_segments;
    if (segment)
        free_segments = segment->next;
    else if (!(segment = pool_take(&early, sizeof *segment)))
        return false;
    memset(segment, 0, sizeof *segment);
    segment->start = start;
    segment->end = start + SEGMENT;
    segment->free_units = UNITS;
    segment->next = segments;
    segments = segment;
    empty_segments++;
    if (++mapped_segments >= NARROW_FROM && heap_options.may_be_narrow)
        atomic_store(&heap_is_narrow, true);
    set_cells(start, start + SEGMENT, (union cell *)segment);
    return true;
}

// Gives units back. A segment without slabs is kept if it is the only one; the address of another
// is returned, to be unmapped.
static uint64_t give_units(struct segment *segment, uint64_t start, unsigned units) {
    if (!segment->free_units) {
        segment->next = segments;
        segments = segment;
    }
    mark_units(segment, (start - segment->start) >> UNIT_BITS, units, false);
    if (segment->free_units < UNITS)
        return 0;
    if (empty_segments == 0) {
        empty_segments = 1;
        return 0;
    }
    struct segment **at = &segments;
    while (*at != segment)
        at = &(*at)->next;
    *at = segment->next;
    set_cells(segment->start, segment->end, NULL);
    mapped_segments--;
    segment->next = free_segments;
    free_segments = segment;
    return segment->start;
}

// ---- slabs -------------------------------------------------------------------------------------

static uint32_t class_size(unsigned class) {
    if (class <= 32)
        return class * 16;
    unsigned top = (class - 33) / 8 + 5;
    return (((class - 33) % 8 + 9) << (top - 3)) * 16 - LEAST_ALIGNMENT;
}

static unsigned slab_units(const struct slab_request *request, uint32_t slot_size) {
    uint64_t end = heap_options.front; // the red zone before the first slot
    if (!request->class)
        return (slot_size + end + UNIT - 1) >> UNIT_BITS;
    unsigned units = request->heap->has_spread[request->class] ? USUAL_UNITS : 1;
    unsigned least = ((uint64_t)FEWEST_SLOTS * slot_size + end + UNIT - 1) >> UNIT_BITS;
    if (units < least)
        units = least;
    // A few more where too much would be left over at the end.
    for (unsigned more = 0; more < 8; more++) {
        uint64_t size = (uint64_t)(units + more) << UNIT_BITS;
        if ((size - end) % slot_size < size / 40)
            return units + more;
    }
    return units;
}

static struct slab *take_slab(unsigned class, unsigned count) {
    struct slab **at = &free_slabs[class];
    while (*at && (*at)->count < count)
        at = &(*at)->next;
    struct slab *slab = *at;
    if (slab) {
        *at = slab->next;
        return slab;
    }
    slab = pool_take(&early, sizeof *slab);
    struct block_note *notes = pool_take(&early, count * sizeof *notes);
    uint32_t *freed_at = pool_take(&late, count * sizeof *freed_at);
    if (!slab || !notes || !freed_at)
        return NULL;
    *slab = (struct slab){.notes = notes, .freed_at = freed_at};
    return slab;
}

static void enter_slab(struct segment *segment, struct slab *slab, unsigned units,
                       struct slab *entry) {
    unsigned first = (slab->start - segment->start) >> UNIT_BITS;
    for (unsigned i = first; i < first + units; i++)
        atomic_store_explicit(&segment->slabs[i], entry, memory_order_release);
}

static struct slab *set_up_slab(const struct slab_request *request, uint32_t slot_size,
                                unsigned units, uint64_t start, struct segment *segment) {
    unsigned count =
        request->class ? (((uint64_t)units << UNIT_BITS) - heap_options.front) / slot_size : 1;
    struct slab *slab = take_slab(request->class, count);
    if (!slab)
        return NULL;
    struct heap *heap = request->heap;
    bool is_first = heap && !heap->has_spread[request->class];
    *slab =
        (struct slab){.start = start,
                      .first = start + heap_options.front,
                      .reciprocal = (((uint64_t)1 << RECIPROCAL_BITS) + slot_size - 1) / slot_size,
                      .slot_size = slot_size,
                      .count = count,
                      .notes = slab->notes,
                      .freed_at = slab->freed_at,
                      .owner = heap,
                      .class = request->class,
                      .units = units,
                      .is_spread = is_first};
    memset(slab->notes, 0, count * sizeof *slab->notes);
    if (heap)
        heap->has_spread[request->class] = true;
    enter_slab(segment, slab, units, slab);
    return slab;
}

// A slab of the class that belonged to a thread that has ended.
static struct slab *take_over_slab(struct heap *heap, unsigned class) {
    for (struct heap *other = heaps; other; other = other->next) {
        if (!other->is_idle)
            continue;
        heap_collect_returned(other);
        struct slab *slab = other->available[class];
        if (slab) {
            other->available[class] = slab->next;
            atomic_store(&slab->owner, heap);
            return slab;
        }
    }
    return NULL;
}

static void make_locked(struct slab_request *request, uint32_t slot_size, unsigned units) {
    if (request->class && (request->slab = take_over_slab(request->heap, request->class)))
        return;
    struct segment *segment;
    uint64_t start = take_units(units, &segment);
    if (start)
        request->slab = set_up_slab(request, slot_size, units, start, segment);
}

void slab_make(void *argument) {
    struct slab_request *request = argument;
    uint32_t slot_size = request->class ? class_size(request->class) : 0;
    if (!slot_size)
        slot_size = (request->size + 15) & ~(uint64_t)15;
    unsigned units = slab_units(request, slot_size);
    if (!request->class) // all of it, so that every address inside has a slot
        slot_size = (units << UNIT_BITS) - heap_options.front;
    segments_lock();
    make_locked(request, slot_size, units);
    segments_unlock();
    if (!request->slab) {
        uint64_t start = tool_map(SEGMENT, SEGMENT);
        if (!is_in_reach(start, SEGMENT))
            return;
        segments_lock();
        if (add_segment(start))
            make_locked(request, slot_size, units);
        segments_unlock();
    }
    struct slab *slab = request->slab;
    if (slab && slab->fresh == 0 && request->class)
        shadow_make_noaccess(slab->start, (uint64_t)slab->units << UNIT_BITS);
}

void slab_give_back(void *argument) {
    struct slab *slab = argument;
    segments_lock();
    struct segment *segment = &cell_of(slab->start)->segment;
    enter_slab(segment, slab, slab->units, NULL);
    uint64_t unmapped = give_units(segment, slab->start, slab->units);
    atomic_store(&slab->owner, NULL);
    slab->next = free_slabs[slab->class];
    free_slabs[slab->class] = slab;
    segments_unlock();
    if (unmapped)
        tool_unmap(unmapped, SEGMENT);
}

// ---- huge blocks -------------------------------------------------------------------------------

static struct huge *take_huge(void) {
    struct huge *huge = free_huges;
    if (huge)
        free_huges = huge->next;
    else
        huge = pool_take(&early, sizeof *huge);
    return huge;
}

void huge_make(void *argument) {
    struct huge_request *request = argument;
    size_t alignment = request->alignment > PAGE ? request->alignment : PAGE;
    uint64_t front = heap_options.front;
    front = (front + request->alignment - 1) & ~(uint64_t)(request->alignment - 1);
    uint64_t size = (front + request->size + request->room + heap_options.red_zone + PAGE - 1) &
                    ~(uint64_t)(PAGE - 1);
    uint64_t start = tool_map(size, alignment > SEGMENT ? alignment : SEGMENT);
    if (!start)
        return;
    segments_lock();
    struct huge *huge = is_in_reach(start, size) ? take_huge() : NULL;
    if (huge) {
        *huge = (struct huge){.start = start,
                              .end = start + size,
                              .is_huge = true,
                              .block = start + front,
                              .size = request->size,
                              .alignment = request->alignment};
        set_cells(start, start + size, (union cell *)huge);
    }
    segments_unlock();
    if (!huge) {
        tool_unmap(start, size);
        return;
    }
    shadow_make_noaccess(start, front);
    shadow_make_noaccess(huge->block + huge->size, huge->end - (huge->block + huge->size));
    request->huge = huge;
}

void huge_give_back(void *argument) {
    struct huge *huge = argument;
    uint64_t start = huge->start;
    size_t size = huge->end - start;
    segments_lock();
    set_cells(start, huge->end, NULL);
    atomic_store(&huge->state, BLOCK_NONE);
    huge->next = free_huges;
    free_huges = huge;
    segments_unlock();
    tool_unmap(start, size);
}

// ---- heaps -------------------------------------------------------------------------------------

struct ledger_heap *(*heap_make_counters)(void);

void heap_make_own(void *unused) {
    segments_lock();
    struct heap *heap = heaps;
    while (heap && !heap->is_idle)
        heap = heap->next;
    if (heap) {
        heap->is_idle = false;
        if (heap->freed_volume)
            atomic_fetch_sub(&heap_orphans, 1);
    } else {
        heap = pool_take(&early, sizeof *heap);
        if (!heap)
            abort();
        *heap = (struct heap){.next = heaps};
        heap->counters = heap_make_counters ? heap_make_counters() : &heap->own_counters;
        heaps = heap;
    }
    own_heap = heap;
    atomic_fetch_add(&heap_count, 1);
    segments_unlock();
}

void heap_thread_ended(void) {
    if (!own_heap)
        return;
    segments_lock();
    own_heap->is_idle = true;
    if (own_heap->freed_volume)
        atomic_fetch_add(&heap_orphans, 1);
    own_heap = NULL;
    atomic_fetch_sub(&heap_count, 1);
    segments_unlock();
}

static void put_before(struct queue *queue, struct queue *older) {
    if (!older->first)
        return;
    older->last->next = queue->first;
    queue->first = older->first;
    if (!queue->last)
        queue->last = older->last;
    *older = (struct queue){NULL, NULL};
}

void heap_take_orphans(void *argument) {
    struct heap *heap = argument;
    segments_lock();
    for (struct heap *other = heaps; other; other = other->next) {
        if (!other->is_idle || !other->freed_volume)
            continue;
        for (unsigned i = 0; i < QUARANTINE_CLASSES; i++)
            put_before(&heap->freed[i], &other->freed[i]);
        heap->freed_volume += other->freed_volume;
        heap->published_volume += other->published_volume;
        other->freed_volume = other->published_volume = 0;
        atomic_fetch_sub(&heap_orphans, 1);
    }
    segments_unlock();
}

void queue_add_chunk(void *argument) {
    struct queue *queue = argument;
    struct queue_chunk *chunk = own_heap->spare;
    own_heap->spare = NULL;
    if (!chunk && !(chunk = malloc(sizeof *chunk)))
        abort();
    chunk->next = NULL;
    chunk->first = chunk->last = 0;
    if (queue->last)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
}

void queue_drop_chunk(void *argument) {
    struct queue *queue = argument;
    struct queue_chunk *chunk = queue->first;
    queue->first = chunk->next;
    if (!queue->first)
        queue->last = NULL;
    if (own_heap->spare)
        free(chunk);
    else
        own_heap->spare = chunk;
}
