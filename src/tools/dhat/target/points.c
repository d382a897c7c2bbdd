// Program points, and what is known of their blocks when they end. General registers only.
#include <sys/mman.h>

#include "tools/dhat/target/dhat.h"
#include "tools/shared/stacks.h"
#include "wire/dhat_events.h"

enum { STACKS = 1 << 30, COUNT_MOST = 0xfffe0000, ACCESSES_USUAL = 1024 };

static uint32_t *points_of_stacks;

static void map_points(void *unused) {
    points_of_stacks = mmap(NULL, sizeof *points_of_stacks * STACKS, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void points_start(void) {
    map_points(NULL);
    stacks_start();
}

// ---- points ------------------------------------------------------------------------------------

static uint32_t new_point(uint32_t stack) {
    const uint64_t *pcs;
    size_t count = stack_pcs(stack, &pcs);
    uint64_t *words = (uint64_t *)(HEAP_NOTES + DHAT_AT_STACKS) + dhat_header->stack_words;
    if (dhat_header->points == DHAT_POINTS ||
        dhat_header->stack_words + count + 1 > DHAT_STACK_WORDS) {
        dhat_header->incomplete = 1;
        return 0;
    }
    words[0] = count;
    for (size_t i = 0; i < count; i++)
        words[i + 1] = pcs[i];
    uint32_t number = dhat_header->points;
    struct dhat_point_counts *point = point_at(number);
    point->stack = dhat_header->stack_words;
    point->peak = dhat_header->peak;
    dhat_header->stack_words += count + 1;
    __atomic_store_n(&dhat_header->points, number + 1, __ATOMIC_RELEASE);
    return number;
}

uint32_t point_here(void) {
    uint32_t stack = stack_here();
    if (UNLIKELY(!stack || points_of_stacks == MAP_FAILED))
        return 0;
    uint32_t number = __atomic_load_n(&points_of_stacks[stack], __ATOMIC_ACQUIRE);
    if (LIKELY(number))
        return number;
    events_lock();
    number = points_of_stacks[stack];
    if (!number) {
        number = new_point(stack);
        __atomic_store_n(&points_of_stacks[stack], number, __ATOMIC_RELEASE);
    }
    events_unlock();
    return number;
}

// ---- blocks ------------------------------------------------------------------------------------

void block_made(struct dhat_thread *thread, struct dhat_note *note, uint64_t start) {
    // Where sizes differ, nobody will ask for single bytes.
    if (note->size <= ACCESSES_USUAL && !point_at(note->point)->differ &&
        heap_bits(start) <= HEAP_COUNTED_MOST)
        note->counted_end = note->end;
    struct dhat_event *event = events_begin(thread);
    event->point = note->point;
    event->kind = DHAT_MADE;
    event->size = note->size;
    events_end(thread);
}

// Counts of single bytes are not kept over changes of size. A block that stays where it is counts
// as copied all the same.
void block_resized(struct dhat_thread *thread, struct dhat_note *note, uint64_t size) {
    uint64_t copied = size < note->size ? size : note->size;
    note->reads[0] += copied;
    note->writes[0] += copied;
    struct dhat_event *event = events_begin(thread);
    event->point = note->point;
    event->kind = DHAT_RESIZED;
    event->size = size;
    event->reads = note->size;
    events_end(thread);
}

// ---- the end of a block ------------------------------------------------------------------------

static void add_counters(struct dhat_point_counts *point, uint64_t start) {
    uint32_t *sums = (uint32_t *)(HEAP_NOTES + DHAT_AT_ACCESSES) + point->accesses;
    const uint16_t *counters = counters_of(start);
    for (size_t i = 0; i < point->size; i++)
        if (LIKELY(sums[i] <= COUNT_MOST))
            sums[i] += counters[i];
}

// A place for so many sums; 0: there is none left.
static uint64_t take_sums(uint64_t count) {
    uint64_t first = __atomic_load_n(&dhat_header->access_words, __ATOMIC_RELAXED);
    do {
        if (first + count > DHAT_ACCESSES)
            return 0;
    } while (!__atomic_compare_exchange_n(&dhat_header->access_words, &first, first + count, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return first;
}

static void lock_point(struct dhat_point_counts *point) {
    while (UNLIKELY(__atomic_exchange_n(&point->lock, 1, __ATOMIC_ACQUIRE)))
        while (__atomic_load_n(&point->lock, __ATOMIC_RELAXED))
            __builtin_ia32_pause();
}

static void unlock_point(struct dhat_point_counts *point) {
    __atomic_store_n(&point->lock, 0, __ATOMIC_RELEASE);
}

static void fold_counters(struct dhat_point_counts *point, const struct dhat_note *note,
                          uint64_t start) {
    if (__atomic_load_n(&point->differ, __ATOMIC_RELAXED))
        return;
    lock_point(point);
    if (!point->size && !point->differ) {
        point->size = note->size;
        if (note->counted_end)
            point->accesses = take_sums(note->size);
    } else if (point->size != note->size) {
        point->differ = 1;
        point->size = point->accesses = 0;
    }
    if (point->accesses && note->counted_end)
        add_counters(point, start);
    unlock_point(point);
}

void block_gone(struct dhat_thread *thread, struct dhat_note *note, uint64_t start) {
    fold_counters(point_at(note->point), note, start);
    struct dhat_event *event = events_begin(thread);
    event->point = note->point;
    event->kind = DHAT_GONE;
    event->size = note->size;
    event->reads = note_sum(note->reads);
    event->writes = note_sum(note->writes);
    events_end(thread);
}

static void fold_live_block(const struct dhat_note *note, uint64_t start) {
    struct dhat_point_counts *point = point_at(note->point);
    point->reads += note_sum(note->reads);
    point->writes += note_sum(note->writes);
    fold_counters(point, note, start);
}

static void fold_live_blocks(unsigned bits) {
    for (uint32_t i = 0; i < dhat_header->notes[bits]; i++) {
        struct dhat_note *note = note_at(bits, i);
        if (note->size && note->point)
            fold_live_block(note, heap_slot(bits, i));
    }
}

void points_end(void) {
    events_lock();
    struct dhat_header *h = dhat_header;
    events_tick();
    if (h->mode == DHAT_HEAP) {
        dhat_look_for_peak(h);
        for (uint32_t i = 1; i < h->points; i++) {
            dhat_settle(h, point_at(i));
            point_at(i)->lifetimes += point_at(i)->blocks * h->time;
        }
        for (unsigned bits = HEAP_LEAST; bits <= HEAP_MOST; bits++)
            fold_live_blocks(bits);
    }
    h->is_over = 1;
    events_unlock();
}
