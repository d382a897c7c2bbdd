#include "tools/shared/supervisor/recorded/source_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "base/text.h"
#include "wire/wire.h"

// So many words are taken before the writer, who may be waiting for room, is told.
#define GIVE_WORDS (WIRE_HEAP_RING_WORDS / 8)

#define NO_CLOCK UINT64_MAX
// Of the fraction in `factor`: a day is right to the microsecond.
#define FACTOR_BITS 40

// ---- time ----

static uint64_t clock_now(const struct heap_source *source) {
    if (source->clock == WIRE_HEAP_CLOCK_MONOTONIC)
        return clock_nanoseconds();
    _mm_mfence();
    _mm_lfence();
    return __rdtsc();
}

// The longer the run, the better the scale is known.
static void calibrate(struct heap_source *source) {
    uint64_t ticks = clock_now(source) - source->first_clock;
    uint64_t time = clock_nanoseconds() - source->first_time;
    if (source->clock == WIRE_HEAP_CLOCK_TSC && time > 1000000)
        source->scale = (double)time / (double)ticks;
    source->factor = (uint64_t)(source->scale * (double)(1ull << FACTOR_BITS));
}

// Never before the last one told, also when the scale has just been corrected.
static uint64_t time_of(const struct heap_source *source, uint64_t clock) {
    uint64_t ticks = clock > source->clock_start ? clock - source->clock_start : 0;
    uint64_t time = (uint64_t)((unsigned __int128)ticks * source->factor >> FACTOR_BITS);
    time -= time > source->halted_from ? source->halted : 0;
    return time > source->time ? time : source->time;
}

void heap_source_halt(struct heap_source *source) {
    source->halted_from = time_of(source, clock_now(source));
}

void heap_source_continue(struct heap_source *source) {
    source->halted = time_of(source, clock_now(source)) - source->halted_from;
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
    source->first_time = clock_nanoseconds();
    source->scale = 1;
    source->factor = 1ull << FACTOR_BITS;
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

void heap_source_interpreter(struct heap_source *source,
                             const struct heap_interpreter *interpreter) {
    source->interpreter = interpreter;
}

uint32_t heap_source_python(const struct heap_source *source, uint32_t *state) {
    *state = atomic_load(&source->header->python_state);
    return atomic_load(&source->header->python);
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
    map_integers_free(&source->freed);
    regions_free(&source->regions);
    free(source->rings);
    free(source->order);
    free(source->stacks);
    free(source);
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

static uint64_t word_at(const struct heap_ring *ring, uint64_t at) {
    return __atomic_load_n(&ring->shared->words[at % WIRE_HEAP_RING_WORDS], __ATOMIC_RELAXED);
}

static void look_ahead(struct heap_ring *ring) {
    ring->next =
        ring->head < ring->tail ? word_at(ring, ring->head) >> WIRE_HEAP_KIND_BITS : NO_CLOCK;
}

// How many words follow, by the first word of a record.
static uint64_t more_words(unsigned kind, uint64_t word) {
    uint64_t most = PYTHON_CODE_BYTES;
    switch (kind) {
    case WIRE_HEAP_STACK:
        return (word >> 32 & 0xffff) +
               (word >> 49) * sizeof(struct python_frame) / sizeof(uint64_t);
    case WIRE_HEAP_MARK:
        return ((word >> 32 & 0xffff) + 7) / 8;
    case WIRE_HEAP_CODE:
        return ((word < most ? word : most) + 7) / 8;
    default:
        return 0;
    }
}

// Takes the record at the head, of any kind.
static __attribute__((noinline)) void take_other(struct heap_source *source, struct heap_ring *ring,
                                                 unsigned kind) {
    static const uint8_t words_of[] = {
        [WIRE_HEAP_ALLOCATED] = 4,    [WIRE_HEAP_FREED] = 2,    [WIRE_HEAP_RESIZE_BEGAN] = 2,
        [WIRE_HEAP_RESIZE_ENDED] = 4, [WIRE_HEAP_STACK] = 2,    [WIRE_HEAP_THREAD] = 2,
        [WIRE_HEAP_MAPPED] = 4,       [WIRE_HEAP_UNMAPPED] = 3, [WIRE_HEAP_NAME] = 4,
        [WIRE_HEAP_SAMPLE] = 5,       [WIRE_HEAP_MOMENT] = 3,   [WIRE_HEAP_DEPTH] = 3,
        [WIRE_HEAP_MARK] = 2,         [WIRE_HEAP_ASKED] = 2,    [WIRE_HEAP_CHUNK] = 3,
        [WIRE_HEAP_CODE] = 2};
    uint64_t words[2 + PYTHON_CODE_BYTES / sizeof(uint64_t)]; // the largest
    uint64_t there = ring->tail - ring->head;
    uint64_t count = kind < sizeof words_of ? words_of[kind] : 0;
    if (there >= 2)
        count += more_words(kind, word_at(ring, ring->head + 1));
    if (count == 0 || count > there || count > sizeof words / sizeof *words) {
        source->broken = true;
        return;
    }
    for (uint64_t i = 1; i < count; i++)
        words[i] = word_at(ring, ring->head + i);
    ring->head += count;
    records_take(source, ring, kind, words, count);
}

// What another processor has written, and where its blocks stand, is fetched in time: so many words
// before it is taken.
#define FETCH_WORDS  64
#define FETCH_BLOCKS 24

static inline void fetch_ahead(const struct heap_source *source, struct heap_ring *ring) {
    __builtin_prefetch(&ring->shared->words[(ring->head + FETCH_WORDS) % WIRE_HEAP_RING_WORDS]);
    if (!blocks_need_fetching(&source->blocks))
        return;
    uint64_t at = ring->fetched > ring->head ? ring->fetched : ring->head;
    uint64_t end = ring->head + FETCH_BLOCKS < ring->tail ? ring->head + FETCH_BLOCKS : ring->tail;
    while (at + 2 <= end) {
        unsigned kind = word_at(ring, at) & ((1u << WIRE_HEAP_KIND_BITS) - 1);
        if (kind != WIRE_HEAP_ALLOCATED && kind != WIRE_HEAP_FREED)
            break;
        blocks_fetch(&source->blocks, word_at(ring, at + 1));
        at += kind == WIRE_HEAP_ALLOCATED ? 4 : 2;
    }
    ring->fetched = at;
}

// Takes the record at the head. Nearly all are of the two kinds that are read here.
static inline void take_record(struct heap_source *source, struct heap_ring *ring) {
    unsigned kind = word_at(ring, ring->head) & ((1u << WIRE_HEAP_KIND_BITS) - 1);
    uint64_t at = ring->head;
    uint64_t there = ring->tail - at;
    source->time = time_of(source, ring->next);
    fetch_ahead(source, ring);
    if (kind == WIRE_HEAP_ALLOCATED && there >= 4) {
        ring->head += 4;
        records_allocated(source, ring, word_at(ring, at + 1), word_at(ring, at + 2),
                          word_at(ring, at + 3));
    } else if (kind == WIRE_HEAP_FREED && there >= 2) {
        ring->head += 2;
        records_freed(source, ring, word_at(ring, at + 1));
    } else {
        take_other(source, ring, kind);
    }
    look_ahead(ring);
}

static void give_back(struct heap_ring *ring) {
    struct wire_heap_ring *shared = ring->shared;
    if (ring->given == ring->head)
        return;
    ring->given = ring->head;
    atomic_store_explicit(&shared->head, ring->head, memory_order_release);
    atomic_store(&shared->taken, (uint32_t)ring->head);
    // A writer that waits is woken when there is enough room for it to be worth while, and once.
    if (atomic_load(&shared->waiting) && ring->tail - ring->head <= WIRE_HEAP_RING_WORDS / 2 &&
        atomic_exchange(&shared->waiting, 0))
        syscall(SYS_futex, &shared->taken, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// A ring whose thread has ended and said all it had to say serves another one.
static void recycle(struct heap_source *source, struct heap_ring *ring) {
    if (ring->head != ring->tail || atomic_load(&ring->shared->state) != WIRE_HEAP_ENDED ||
        atomic_load(&ring->shared->tail) != ring->head)
        return;
    records_thread_ended(source, ring);
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
        struct heap_ring *ring = &source->rings[source->order[0]];
        uint64_t until = runner_up(source);
        if (until > horizon)
            until = horizon;
        if (ring->next > horizon)
            return;
        do {
            take_record(source, ring);
            if (ring->head - ring->given >= GIVE_WORDS)
                give_back(ring);
        } while (ring->next <= until && !source->broken);
        if (ring->next == NO_CLOCK) {
            give_back(ring);
            source->order[0] = source->order[--source->order_count];
        }
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
        struct heap_ring *ring = &source->rings[i];
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
    for (uint32_t i = 0; i < source->ring_count && !source->broken; i++) {
        give_back(&source->rings[i]);
        recycle(source, &source->rings[i]);
    }
    source->counts.missed = atomic_load(&source->header->missed);
    if (source->broken)
        give_up(source);
    return words;
}

void heap_source_end(struct heap_source *source) {
    calibrate(source);
    // On a busy machine, a process that has ended may be noticed seconds later.
    uint64_t ended = atomic_load(&source->header->ended_at);
    uint64_t time = time_of(source, ended ? ended : clock_now(source));
    for (size_t i = 0; i < source->sink_count; i++)
        if (source->sinks[i].end)
            source->sinks[i].end(source->sinks[i].context, time);
}

bool heap_source_is_void(const struct heap_source *source) {
    return source->header->is_provisional && !heap_source_has_ended(source);
}

bool heap_source_has_ended(const struct heap_source *source) {
    return atomic_load(&source->header->ended_at) != 0;
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
