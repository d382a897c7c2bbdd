// The rules. Each says what must hold before something is called by its name; the bounds are such
// that ordinary programs, which fill tables when they start and use temporary strings, are left in
// peace.
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/diagnose/parts.h"
#include "report/heap/rows.h"

static const char *number(char digits[32], uint64_t value) {
    return text_number(digits, value);
}

static double seconds(uint64_t time) {
    return (double)time / 1e9;
}

// Tells what a stack is found guilty of, in one or two sentences.
__attribute__((format(printf, 6, 7))) static void say(struct diagnoses *to, uint32_t stack,
                                                      enum diagnosis_kind kind,
                                                      enum certainty certainty, uint64_t bytes,
                                                      const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    diagnoses_add(to, kind, certainty, bytes, text_take(&text))->stack = stack;
}

// ---- one stack ---------------------------------------------------------------------------------

#define TEMPORARY_COUNT 20000 // allocations
#define TEMPORARY_SHARE 0.10  // of all allocations of the program
#define TEMPORARY_PART  0.95  // of those of the stack
#define TEMPORARY_START 16    // a part of the run: what is over by then is the program's start
#define TINY_BLOCKS     50000 // at the peak
#define TINY_SIZE       32    // bytes on average
#define TINY_SHARE      0.05  // of the bytes at the peak

static void find_temporary(const struct examination *it, uint32_t stack, struct diagnoses *to) {
    const struct summary_site *site = &it->file->summary.sites[stack];
    uint64_t all = it->file->summary.total.allocated;
    if (site->temporary < TEMPORARY_COUNT ||
        (double)site->temporary < TEMPORARY_PART * (double)site->allocated ||
        (double)site->temporary < TEMPORARY_SHARE * (double)all ||
        it->sites[stack].last < it->end / TEMPORARY_START)
        return;
    char count[32], size[32];
    say(to, stack, DIAGNOSIS_TEMPORARY, CERTAINTY_CERTAIN, site->allocated_bytes,
        "%s blocks of %s bytes on average, %.0f %% of all that the program allocates, are "
        "freed before their thread does anything else with the heap.",
        number(count, site->temporary), number(size, site->allocated_bytes / site->allocated),
        100 * (double)site->temporary / (double)all);
}

static void find_tiny(const struct examination *it, uint32_t stack, struct diagnoses *to) {
    const struct summary_site *site = &it->file->summary.sites[stack];
    if (site->peak < TINY_BLOCKS || site->peak_bytes > TINY_SIZE * site->peak ||
        (double)site->peak_bytes < TINY_SHARE * (double)it->file->summary.total.peak_bytes)
        return;
    char count[32];
    say(to, stack, DIAGNOSIS_TINY, CERTAINTY_CERTAIN, 16 * site->peak,
        "%s blocks of %.0f bytes on average at the peak; what the allocator adds to them is "
        "about as much again.",
        number(count, site->peak), (double)site->peak_bytes / (double)site->peak);
}

#define CAPACITY_SHARE 0.10 // of what is alive in the end
#define IDLE_BYTES     (256ull << 10)
#define IDLE_SHARE     0.10
#define IDLE_THREADS   2 // by one alone, it may be anything

static void find_capacity(const struct examination *it, uint32_t stack, struct diagnoses *to) {
    const struct site *site = &it->sites[stack];
    if (!site->kept_bytes || site->enlarged > it->end / 2 ||
        (double)site->kept_bytes < CAPACITY_SHARE * (double)it->live_bytes)
        return;
    char bytes[32], blocks[32];
    say(to, stack, DIAGNOSIS_CAPACITY, CERTAINTY_POSSIBLE, site->kept_bytes,
        "%s bytes in %s buffers that were enlarged step by step, the last time at %.1f s, "
        "and have kept that size for the %.1f s since then.",
        number(bytes, site->kept_bytes), number(blocks, site->kept_blocks), seconds(site->enlarged),
        seconds(it->end - site->enlarged));
}

static void find_idle(const struct examination *it, uint32_t stack, struct diagnoses *to) {
    const struct site *site = &it->sites[stack];
    if (site->idle_bytes < IDLE_BYTES || site->idle_threads < IDLE_THREADS ||
        (double)site->idle_bytes < IDLE_SHARE * (double)it->live_bytes)
        return;
    char bytes[32], blocks[32], threads[32];
    uint64_t gone = site->gone_threads;
    // Threads that come and go one after the other work for themselves. Those of one time may have
    // built something together that others use.
    bool is_sequence = gone == site->idle_threads && site->gone_first < site->began_last;
    say(to, stack, DIAGNOSIS_THREADS, is_sequence ? CERTAINTY_LIKELY : CERTAINTY_POSSIBLE,
        site->idle_bytes,
        "%s bytes in %s blocks were allocated by %s threads%s, and are still there.",
        number(bytes, site->idle_bytes), number(blocks, site->idle_blocks),
        number(threads, site->idle_threads),
        gone == site->idle_threads ? " that have ended"
        : gone                     ? " that have ended, or have slept in the second half of the run"
                                   : " that have slept in the second half of the run");
}

void diagnose_sites(const struct examination *it, struct diagnoses *to) {
    for (size_t i = 1; i < it->site_count; i++) {
        find_temporary(it, (uint32_t)i, to);
        find_tiny(it, (uint32_t)i, to);
        find_capacity(it, (uint32_t)i, to);
        find_idle(it, (uint32_t)i, to);
    }
}

// ---- the whole ---------------------------------------------------------------------------------

#define SPIKE_BYTES  (8ull << 20)
#define SPIKE_FACTOR 2.0  // over what is alive most of the time
#define SPIKE_TIME   0.25 // of the run above half of the peak, at most: a ramp is no spike
#define SPIKE_AFTER  4    // moments after the peak, at least, with less than half of it
#define SPIKE_SHARE  0.6  // of the peak, by so many places:
#define SPIKE_PLACES 3

static int by_number(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// Whether what grows makes most of the peak: then it ends with the program, and is no spike.
static bool is_of_growth(const struct diagnoses *found, uint64_t peak) {
    for (size_t i = 0; i < found->count; i++)
        if (found->items[i].is_growth && found->items[i].bytes >= peak / 2)
            return true;
    return false;
}

static void find_spike(const struct examination *it, struct diagnoses *to) {
    const struct summary *summary = &it->file->summary;
    uint64_t peak = summary->total.peak_bytes, sorted[MOMENTS];
    if (is_of_growth(to, peak))
        return;
    memcpy(sorted, it->totals, sizeof sorted);
    qsort(sorted, MOMENTS, sizeof *sorted, by_number);
    uint64_t usual = sorted[MOMENTS / 2];
    size_t high = 0, after = 0;
    for (size_t i = 0; i < MOMENTS; i++) {
        bool is_high = it->totals[i] > peak / 2;
        high += is_high;
        after += !is_high && it->end / MOMENTS * (i + 1) > it->peak_time;
    }
    if (peak < usual + SPIKE_BYTES || (double)peak < SPIKE_FACTOR * (double)usual ||
        (double)high > SPIKE_TIME * MOMENTS || after < SPIKE_AFTER)
        return;
    uint32_t top[SPIKE_PLACES] = {0};
    for (size_t i = 1; i < it->site_count; i++) {
        uint32_t stack = (uint32_t)i;
        for (size_t place = 0; place < SPIKE_PLACES; place++) {
            uint64_t held = top[place] ? summary->sites[top[place]].peak_bytes : 0;
            if (summary->sites[stack].peak_bytes > held) {
                uint32_t moved = top[place];
                top[place] = stack;
                stack = moved;
                if (!stack)
                    break;
            }
        }
    }
    uint64_t sum = 0;
    for (size_t place = 0; place < SPIKE_PLACES; place++)
        sum += top[place] ? summary->sites[top[place]].peak_bytes : 0;
    if ((double)sum < SPIKE_SHARE * (double)peak)
        return;
    char digits[3][32];
    say(to, top[0], DIAGNOSIS_SPIKE, CERTAINTY_CERTAIN, peak - usual,
        "At %.2f s %s bytes are alive, most of the time %s; this place holds %s of them.",
        seconds(summary->peak_time), number(digits[0], peak), number(digits[1], usual),
        number(digits[2], summary->sites[top[0]].peak_bytes));
}

#define FRAGMENTATION_BYTES  (16ull << 20)
#define FRAGMENTATION_FACTOR 3.0
#define PINNING_BLOCKS       500

// Memory in use is at the end far above what is alive, and was needed at the peak.
static void find_fragmentation(const struct examination *it, struct diagnoses *to) {
    const struct summary *summary = &it->file->summary;
    uint64_t alive = it->live_bytes + summary->regions.live_bytes;
    if (it->resident < alive + FRAGMENTATION_BYTES ||
        (double)it->resident < FRAGMENTATION_FACTOR * (double)alive ||
        summary->total.peak_bytes < alive + FRAGMENTATION_BYTES ||
        it->resident < summary->total.peak_bytes / 2)
        return;
    uint32_t pinning = 0;
    uint64_t blocks = 0;
    for (size_t i = 1; i < it->site_count; i++) {
        if (it->sites[i].old_blocks > blocks) {
            blocks = it->sites[i].old_blocks;
            pinning = (uint32_t)i;
        }
    }
    if (blocks < PINNING_BLOCKS)
        return;
    char digits[4][32];
    say(to, pinning, DIAGNOSIS_FRAGMENTATION, CERTAINTY_LIKELY, it->resident - alive,
        "%s bytes are in memory at the end, but only %s are alive; at the peak it was %s. %s "
        "blocks from before the peak, most of them of this place, stay among what was "
        "freed.",
        number(digits[0], it->resident), number(digits[1], alive),
        number(digits[2], summary->total.peak_bytes), number(digits[3], blocks));
}

void diagnose_whole(const struct examination *it, struct diagnoses *to) {
    find_spike(it, to);
    find_fragmentation(it, to);
}
