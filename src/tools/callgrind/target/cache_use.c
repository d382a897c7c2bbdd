#pragma GCC target("general-regs-only")

#include "tools/callgrind/target/cache_use.h"

#include <sys/mman.h>

#include "tools/callgrind/target/counts.h"

enum { CACHES = 3, LAST = 2, MASK_BITS = 32 };
enum { TIMES_1, UNUSED_1, TIMES_2, UNUSED_2, MOST = 1000 }; // in charges

struct line {
    uint64_t number, stamp;
    uint64_t *charges;  // NULL: nobody's
    struct line *below; // in the last level
    uint32_t count;
    uint32_t mask; // of what was used; 32 bits are the whole line
};

struct cache {
    struct line *lines; // by set
    uint64_t mask;      // sets - 1
    uint64_t line_count;
    unsigned ways, bits;
};

struct cache_use {
    struct cache caches[CACHES];
    uint64_t clock;
};

struct cache_use *cache_use_new(const struct counts_cache shapes[3]) {
    struct cache_use *use = counts_reserve(sizeof *use);
    for (unsigned i = 0; i < CACHES; i++) {
        struct cache *cache = &use->caches[i];
        cache->bits = __builtin_ctz(shapes[i].line);
        cache->ways = shapes[i].assoc;
        cache->line_count = shapes[i].size / shapes[i].line;
        cache->mask = cache->line_count / cache->ways - 1;
        cache->lines = counts_reserve(cache->line_count * sizeof *cache->lines);
    }
    return use;
}

void cache_use_free(struct cache_use *use) {
    for (unsigned i = 0; i < CACHES; i++)
        munmap(use->caches[i].lines, use->caches[i].line_count * sizeof(struct line));
    munmap(use, sizeof *use);
}

// The line's place, or the one that it is to have.
static struct line *find(struct cache_use *use, const struct cache *cache, uint64_t number,
                         bool *found) {
    struct line *first = cache->lines + (number & cache->mask) * cache->ways, *oldest = first;
    *found = false;
    for (struct line *line = first; line < first + cache->ways && !*found; line++) {
        *found = line->number == number;
        if (*found || line->stamp < oldest->stamp)
            oldest = line;
    }
    oldest->stamp = ++use->clock;
    oldest->number = number;
    return oldest;
}

static uint32_t mask_of(const struct cache *cache, uint64_t first, uint64_t last) {
    uint64_t size = 1ul << cache->bits;
    unsigned low = (first & (size - 1)) * MASK_BITS / size;
    unsigned high = ((last & (size - 1)) + 1) * MASK_BITS - 1;
    return UINT32_MAX << low & UINT32_MAX >> (MASK_BITS - 1 - high / size);
}

static void charge(const struct cache *cache, const struct line *line, unsigned times,
                   unsigned unused) {
    unsigned bits = 0;
    for (uint32_t left = line->mask; left; left &= left - 1)
        bits++;
    line->charges[times] += MOST / line->count;
    line->charges[unused] += ((uint64_t)(MASK_BITS - bits) << cache->bits) / MASK_BITS;
}

static void leave_first(const struct cache *cache, const struct line *line, bool collects) {
    if (!line->count || !line->charges || !collects)
        return;
    charge(cache, line, TIMES_1, UNUSED_1);
    line->below->mask |= line->mask;
    line->below->count += line->count;
}

static void leave_last(const struct cache *cache, const struct line *line, bool collects) {
    if (line->count && line->charges && collects)
        charge(cache, line, TIMES_2, UNUSED_2);
}

static enum use_outcome use_line(struct cache_use *use, const struct cache *cache, uint64_t first,
                                 uint64_t end, uint64_t *charges, bool collects) {
    const struct cache *last = &use->caches[LAST];
    uint32_t mask = mask_of(cache, first, end);
    bool found;
    struct line *line = find(use, cache, first >> cache->bits, &found);
    if (found) {
        line->count++;
        line->mask |= mask;
        return USE_FOUND;
    }
    leave_first(cache, line, collects);
    line->count = 1;
    line->mask = mask;
    line->charges = charges;
    uint64_t start = first >> cache->bits << cache->bits;
    line->below = find(use, last, start >> last->bits, &found);
    if (found)
        return USE_FOUND_LAST;
    leave_last(last, line->below, collects);
    line->below->count = line->below->mask = 0;
    line->below->charges = charges;
    return USE_FOUND_NOWHERE;
}

enum use_outcome cache_use_refer(struct cache_use *use, unsigned which, uint64_t address,
                                 uint32_t size, uint64_t *charges, bool collects) {
    const struct cache *cache = &use->caches[which];
    uint64_t end = address + size - 1, second = end >> cache->bits << cache->bits;
    if (second <= address)
        return use_line(use, cache, address, end, charges, collects);
    enum use_outcome one = use_line(use, cache, address, second - 1, charges, collects);
    enum use_outcome other = use_line(use, cache, second, end, charges, collects);
    return one > other ? one : other;
}

void cache_use_finish(struct cache_use *use) {
    for (unsigned i = 0; i < CACHES; i++) {
        const struct cache *cache = &use->caches[i];
        for (struct line *line = cache->lines; line < cache->lines + cache->line_count; line++) {
            if (i == LAST)
                leave_last(cache, line, true);
            else
                leave_first(cache, line, true);
            line->charges = 0;
        }
    }
}
