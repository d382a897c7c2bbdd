// The rules. Each says what must hold before something is called by its name; the bounds are such
// that ordinary programs, which fill tables when they start and use temporary strings, are left in
// peace.
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "profile/heap/trend.h"
#include "report/diagnose/parts.h"
#include "report/heap/rows.h"
#include "report/heap/text.h"

static const char *number(char digits[32], uint64_t value) {
    return heap_text_number(digits, value);
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
#define TINY_BLOCKS     50000 // at the peak
#define TINY_SIZE       32    // bytes on average
#define TINY_SHARE      0.05  // of the bytes at the peak

static void find_temporary(const struct examination *it, uint32_t stack, struct diagnoses *to) {
    const struct summary_site *site = &it->file->summary.sites[stack];
    uint64_t all = it->file->summary.total.allocated;
    if (site->temporary < TEMPORARY_COUNT ||
        (double)site->temporary < TEMPORARY_PART * (double)site->allocated ||
        (double)site->temporary < TEMPORARY_SHARE * (double)all)
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
    if (site->idle_bytes < IDLE_BYTES ||
        (double)site->idle_bytes < IDLE_SHARE * (double)it->live_bytes)
        return;
    size_t threads = 0;
    for (size_t i = 2; i < it->thread_count; i++)
        threads += it->threads[i].bytes && it->threads[i].last < it->end / 2;
    char bytes[32], blocks[32];
    say(to, stack, DIAGNOSIS_THREADS, CERTAINTY_LIKELY, site->idle_bytes,
        "%s bytes in %s blocks were allocated by threads that have done nothing with the "
        "heap in the second half of the run (%zu threads), and are still there.",
        number(bytes, site->idle_bytes), number(blocks, site->idle_blocks), threads);
}

void diagnose_sites(const struct examination *it, struct diagnoses *to) {
    for (size_t i = 1; i < it->site_count; i++) {
        find_temporary(it, (uint32_t)i, to);
        find_tiny(it, (uint32_t)i, to);
        find_capacity(it, (uint32_t)i, to);
        find_idle(it, (uint32_t)i, to);
    }
}

// ---- growth ------------------------------------------------------------------------------------

#define WARM_UP       (MOMENTS / 4)
#define GROWTH_FIT    0.9  // the share of the changes that a straight line explains
#define GROWTH_FACTOR 1.5  // from the end of the warm-up to the end
#define GROWTH_PLACES 4    // more places that grow are a program that builds something
#define SETTLED       0.25 // what the rest may change by
#define BUSY_EVENTS   2000 // with the heap, after the warm-up: the program does work
#define BUSY_FREES    0.15 // of all events are releases
// One buffer that is enlarged is something being put together: a text, a file.
#define GROWTH_BLOCKS 16 // at the peak
// Growth goes on for most of the run, and long enough to tell it from building something up.
#define AT_WORK    0.75 // of the run: what comes after the last moment is its end
#define LONG_SHARE 0.5  // of the run, from the end of the warm-up
#define LONG_TIME  500000000

static struct trend trend_after_warm_up(const uint64_t *series) {
    return trend_of(series, WARM_UP, LAST + 1);
}

// What was given back while the program went on for a while has not only grown. (At its end a
// program may free everything, or wait until leaks were searched for.)
static bool was_given_back(const struct examination *it, const struct site *site,
                           const uint64_t *series) {
    uint64_t rest = it->end > it->last_event ? it->end - it->last_event : 0;
    return (double)rest > (1 - AT_WORK) * (double)it->end && site->live_bytes < series[LAST] / 2;
}

static bool grows(const struct examination *it, const struct site *site, enum axis axis) {
    const uint64_t *series = site->series[axis];
    if (!series || it->file->summary.sites[site - it->sites].peak < GROWTH_BLOCKS ||
        was_given_back(it, site, series))
        return false;
    struct trend line = trend_after_warm_up(series);
    return line.slope > 0 && line.fit >= GROWTH_FIT &&
           (double)series[LAST] >= GROWTH_FACTOR * (double)series[WARM_UP] &&
           series[LAST] > series[MOMENTS * 3 / 4];
}

static bool is_long(const struct examination *it, const struct moments *moments) {
    uint64_t time = moments->times[LAST] - moments->times[WARM_UP];
    return (double)moments->times[LAST] >= AT_WORK * (double)it->last_event &&
           (double)time >= LONG_SHARE * (double)it->last_event && time >= LONG_TIME;
}

// Whether the program works on while what does not grow stays as it is.
static bool is_settled(const struct examination *it, enum axis axis) {
    const struct moments *moments = &it->moments[axis];
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t moment = MOMENTS / 2; moment <= LAST; moment++) {
        uint64_t rest = moments->totals[moment];
        for (size_t i = 0; i < it->site_count; i++) {
            const uint64_t *series = it->sites[i].series[axis];
            if (grows(it, &it->sites[i], axis))
                rest -= series[moment] < rest ? series[moment] : rest;
        }
        least = rest < least ? rest : least;
        most = rest > most ? rest : most;
    }
    uint64_t events = moments->events[LAST] - moments->events[WARM_UP];
    return events >= BUSY_EVENTS &&
           (double)moments->frees[LAST] >= BUSY_FREES * (double)moments->events[LAST] &&
           is_long(it, moments) &&
           (double)(most - least) <= SETTLED * (double)most + (double)DIAGNOSIS_GROWTH_BYTES;
}

struct words_search {
    bool found;
};

static void look_for_words(void *context, const struct heap_place *place,
                           const struct symbol_frame *frame) {
    static const char *const names[] = {"subscri",  "listener", "handler",        "callback",
                                        "observer", "register", "signal_connect", "on_event"};
    struct words_search *search = context;
    char lower[256];
    size_t i = 0;
    for (; frame->name && frame->name[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)frame->name[i]);
    lower[i] = '\0';
    for (size_t word = 0; word < sizeof names / sizeof *names; word++)
        search->found |= strstr(lower, names[word]) != NULL;
}

static void report_growth(const struct examination *it, uint32_t stack, enum axis axis,
                          struct diagnoses *to) {
    const uint64_t *series = it->sites[stack].series[axis];
    const uint64_t *times = it->moments[axis].times;
    double time = seconds(times[LAST] - times[WARM_UP]);
    struct words_search search = {0};
    rows_frames(it->file, stack, look_for_words, &search);
    char first[32], last[32], slope[32];
    say(to, stack, search.found ? DIAGNOSIS_HANDLERS : DIAGNOSIS_GROWS, CERTAINTY_LIKELY,
        series[LAST],
        "+%s bytes a second, steadily, while the rest has settled: from %s bytes after the "
        "warm-up (%.1f s) to %s shortly before the end (%.1f s).",
        number(slope, time > 0 ? (uint64_t)((double)(series[LAST] - series[WARM_UP]) / time) : 0),
        number(first, series[WARM_UP]), seconds(times[WARM_UP]), number(last, series[LAST]),
        seconds(times[LAST]));
}

double diagnose_rise(const struct examination *it) {
    double moment = seconds(it->end) / MOMENTS;
    return moment > 0 ? trend_after_warm_up(it->moments[BY_TIME].totals).slope / moment : 0;
}

static bool growth_by(const struct examination *it, enum axis axis, struct diagnoses *to) {
    size_t places = 0;
    for (size_t i = 1; i < it->site_count; i++)
        places += grows(it, &it->sites[i], axis);
    if (!places || places > GROWTH_PLACES || !is_settled(it, axis))
        return false;
    for (size_t i = 1; i < it->site_count; i++)
        if (grows(it, &it->sites[i], axis))
            report_growth(it, (uint32_t)i, axis, to);
    return true;
}

void diagnose_growth(const struct examination *it, struct diagnoses *to) {
    for (enum axis axis = 0; axis < AXES; axis++)
        if (growth_by(it, axis, to))
            return;
}

// ---- the whole ---------------------------------------------------------------------------------

#define SPIKE_BYTES  (8ull << 20)
#define SPIKE_FACTOR 2.0  // over what is alive most of the time
#define SPIKE_TIME   0.25 // of the run above four fifths of the peak, at most
#define SPIKE_SHARE  0.6  // of the peak, by so many places:
#define SPIKE_PLACES 3

static int by_number(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void find_spike(const struct examination *it, struct diagnoses *to) {
    const struct summary *summary = &it->file->summary;
    uint64_t peak = summary->total.peak_bytes, sorted[MOMENTS];
    memcpy(sorted, it->moments[BY_TIME].totals, sizeof sorted);
    qsort(sorted, MOMENTS, sizeof *sorted, by_number);
    uint64_t usual = sorted[MOMENTS / 2];
    size_t high = 0;
    for (size_t i = 0; i < MOMENTS; i++)
        high += it->moments[BY_TIME].totals[i] > peak / 5 * 4;
    if (peak < usual + SPIKE_BYTES || (double)peak < SPIKE_FACTOR * (double)usual ||
        (double)high > SPIKE_TIME * MOMENTS)
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
