// Program points: sums over blocks, peaks, time. General registers only.
//
// What a point had at the global peak is not written down when the peak comes, but when the point
// changes next: until then it still has it. Peaks are numbered for that.
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tools/dhat/dhat.h"
#include "tools/memcheck/stacks.h"

enum { STACKS = 1 << 30, COUNT_MOST = 0xfffe0000, ACCESSES_USUAL = 1024 };

static atomic_uint lock; // 0: free, 1: taken, 2: somebody waits
static uint32_t *points_of_stacks;

static void futex(int operation, unsigned value) {
    long result;
    register long no_timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_futex), "D"(&lock), "S"(operation), "d"(value), "r"(no_timeout)
                     : "rcx", "r11", "memory");
}

void points_lock(void) {
    unsigned free = 0;
    for (unsigned i = 0; i < 100; i++, free = 0) {
        if (LIKELY(atomic_compare_exchange_weak_explicit(&lock, &free, 1, memory_order_acquire,
                                                         memory_order_relaxed)))
            return;
        __builtin_ia32_pause();
    }
    while (atomic_exchange(&lock, 2))
        futex(FUTEX_WAIT_PRIVATE, 2);
}

void points_unlock(void) {
    if (UNLIKELY(atomic_exchange_explicit(&lock, 0, memory_order_release) == 2))
        futex(FUTEX_WAKE_PRIVATE, 1);
}

void points_forked(void) {
    atomic_store(&lock, 0);
}

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
    uint64_t *words = (uint64_t *)(TOOL_HEAP_NOTES + DHAT_AT_STACKS) + dhat_header->stack_words;
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
    points_lock();
    number = points_of_stacks[stack];
    if (!number) {
        number = new_point(stack);
        __atomic_store_n(&points_of_stacks[stack], number, __ATOMIC_RELEASE);
    }
    points_unlock();
    return number;
}

void points_tick(void) {
    struct dhat_thread *thread = tool_thread_state();
    uint64_t now = 0;
    for (unsigned i = 0; i < TOOL_WORDS; i++)
        now += thread->words[i];
    dhat_header->time += now - thread->told;
    thread->told = now;
}

void point_add(uint32_t number, uint64_t size) {
    struct dhat_point_counts *point = point_at(number);
    point->total_bytes += size;
    point->total_blocks++;
}

// ---- sums --------------------------------------------------------------------------------------

static void settle(struct dhat_point_counts *point) {
    if (LIKELY(point->peak == dhat_header->peak))
        return;
    point->peak_bytes = point->bytes;
    point->peak_blocks = point->blocks;
    point->peak = dhat_header->peak;
}

// What comes next brings the sum down, or it is the end.
static void look_for_peak(void) {
    if (dhat_header->bytes == dhat_header->max_bytes)
        dhat_header->peak++;
}

// Of several equal peaks the last one counts. A point's own peak is only looked for at the global
// one, as Valgrind does.
static void look_for_maximum(struct dhat_point_counts *point) {
    struct dhat_header *h = dhat_header;
    if (h->bytes < h->max_bytes)
        return;
    h->max_bytes = h->bytes;
    h->max_blocks = h->blocks;
    h->peak_time = h->time;
    point->max_bytes = point->bytes;
    point->max_blocks = point->blocks;
}

void block_made(struct dhat_note *note, uint64_t start) {
    struct dhat_point_counts *point = point_at(note->point);
    settle(point);
    point_add(note->point, note->size);
    dhat_header->blocks++;
    dhat_header->bytes += note->size;
    point->blocks++;
    point->bytes += note->size;
    note->born = dhat_header->time;
    // Where sizes differ, nobody will ask for single bytes.
    if (note->size <= ACCESSES_USUAL && !point->differ &&
        tool_heap_bits(start) <= TOOL_HEAP_COUNTED_MOST)
        note->counted_end = note->end;
    look_for_maximum(point);
}

// Counts of single bytes are not kept over changes of size. A block that stays where it is counts
// as copied all the same.
void block_resized(struct dhat_note *note, uint64_t size) {
    struct dhat_point_counts *point = point_at(note->point);
    uint64_t copied = size < note->size ? size : note->size;
    if (size < note->size)
        look_for_peak();
    settle(point);
    point_add(note->point, size);
    dhat_header->bytes += size - note->size;
    point->bytes += size - note->size;
    note->reads[0] += copied;
    note->writes[0] += copied;
    look_for_maximum(point);
}

// ---- the end of a block ------------------------------------------------------------------------

static void add_counters(struct dhat_point_counts *point, uint64_t start) {
    uint32_t *sums = (uint32_t *)(TOOL_HEAP_NOTES + DHAT_AT_ACCESSES) + point->accesses;
    const uint16_t *counters = counters_of(start);
    for (size_t i = 0; i < point->size; i++)
        if (LIKELY(sums[i] <= COUNT_MOST))
            sums[i] += counters[i];
}

static void fold_counters(struct dhat_point_counts *point, const struct dhat_note *note,
                          uint64_t start) {
    struct dhat_header *h = dhat_header;
    if (!point->size && !point->differ) {
        point->size = note->size;
        if (note->counted_end && h->access_words + note->size <= DHAT_ACCESSES) {
            point->accesses = h->access_words;
            h->access_words += note->size;
        }
    } else if (point->size != note->size) {
        point->differ = 1;
        point->size = point->accesses = 0;
    }
    if (point->accesses && note->counted_end)
        add_counters(point, start);
}

static void fold(struct dhat_note *note, uint64_t start) {
    struct dhat_point_counts *point = point_at(note->point);
    point->lifetimes += dhat_header->time - note->born;
    point->reads += note_sum(note->reads);
    point->writes += note_sum(note->writes);
    fold_counters(point, note, start);
}

void block_gone(struct dhat_note *note, uint64_t start) {
    struct dhat_point_counts *point = point_at(note->point);
    look_for_peak();
    settle(point);
    dhat_header->blocks--;
    dhat_header->bytes -= note->size;
    point->blocks--;
    point->bytes -= note->size;
    fold(note, start);
}

static void fold_all(unsigned bits) {
    for (uint32_t i = 0; i < dhat_header->notes[bits]; i++) {
        struct dhat_note *note = note_at(bits, i);
        if (note->size && note->point)
            fold(note, tool_heap_slot(bits, i));
    }
}

void points_end(void) {
    points_lock();
    struct dhat_header *h = dhat_header;
    points_tick();
    if (h->mode == DHAT_HEAP) {
        look_for_peak();
        for (uint32_t i = 1; i < h->points; i++)
            settle(point_at(i));
        for (unsigned bits = TOOL_HEAP_LEAST; bits <= TOOL_HEAP_MOST; bits++)
            fold_all(bits);
    }
    h->is_over = 1;
    points_unlock();
}
