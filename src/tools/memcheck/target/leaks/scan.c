// Words of memory, as pointers to blocks.
//
// In a large heap, every look-up misses the cache several times over: the table of slabs, the slab,
// its notes, the state. So words that may be pointers are gathered first, and each step of the
// look-up is done for all of them before the next, with what that will read on its way into the
// cache. Blocks to scan are dealt with in the same way.
#include "tools/memcheck/target/leaks/search.h"

#include <unistd.h>

enum {
    PAGE = 4096,
    PAGES = 512,            // looked up at once
    WORTH_ASKING = 1 << 18, // bytes from which on the kernel is asked which pages were touched
    GATHERED = 128,
};

struct candidate {
    uint64_t holder, value;
    struct leak_lookup lookup;
    uint32_t from;
};

struct scan {
    const struct search *search;
    leak_visit *visit;
    void *context;
    bool is_bare;                    // memory without shadow is being looked at
    uint32_t from;                   // place of the block whose words are being looked at
    const struct leak_range *within; // where the last block was
    unsigned count;
    struct candidate gathered[GATHERED];
};

static void resolve(struct scan *scan) {
    const struct leak_blocks *blocks = &scan->search->blocks;
    struct candidate *end = scan->gathered + scan->count;
    for (struct candidate *at = scan->gathered; at < end; at++)
        lookup_slab(&at->lookup, at->value);
    for (struct candidate *at = scan->gathered; at < end; at++)
        lookup_slot(blocks, &at->lookup, at->value);
    for (struct candidate *at = scan->gathered; at < end; at++) {
        struct leak_block block;
        if (lookup_block(blocks, &at->lookup, at->value, &block))
            scan->visit(scan->context, at->from, at->holder, at->value, &block);
    }
    scan->count = 0;
}

static void gather(struct scan *scan, uint64_t holder, uint64_t value) {
    struct candidate *candidate = &scan->gathered[scan->count++];
    candidate->holder = holder;
    candidate->value = value;
    candidate->from = scan->from;
    lookup_cell(&candidate->lookup, value);
    if (scan->count == GATHERED)
        resolve(scan);
}

// Words at `words`, which are those of the target's memory at `start`.
static void scan_words(struct scan *scan, const uint64_t *words, uint64_t start, uint64_t end) {
    uint64_t lowest = scan->search->blocks.lowest, span = scan->search->blocks.span;
    for (uint64_t at = start; at < end; at += 8, words++)
        if (*words - lowest < span && (scan->is_bare || word_is_known(at)))
            gather(scan, at, *words);
}

// Reading may fault, as beyond the end of a file.
static void scan_guarded(struct scan *scan, uint64_t start, uint64_t end) {
    uint64_t page[PAGE / 8];
    while (start < end) {
        uint64_t stop = (start & -(uint64_t)PAGE) + PAGE;
        if (stop > end)
            stop = end;
        if (tool_read(page, start, stop - start) == 0)
            scan_words(scan, page, start, stop);
        start = stop;
    }
}

// Only what was ever touched: a page that was not is all zero, and reading it would cost memory.
static void scan_sparse(struct scan *scan, uint64_t start, uint64_t end) {
    const uint64_t present = 1ul << 63 | 1ul << 62; // in memory, or swapped out
    uint64_t pages[PAGES];
    while (start < end) {
        uint64_t first = start / PAGE, count = (end + PAGE - 1) / PAGE - first;
        if (count > PAGES)
            count = PAGES;
        ssize_t got = pread(scan->search->pagemap, pages, count * 8, (off_t)(first * 8));
        if (got != (ssize_t)(count * 8)) {
            scan_words(scan, (const uint64_t *)start, start, end);
            return;
        }
        for (uint64_t i = 0; i < count; i++) {
            uint64_t stop = (first + i + 1) * PAGE;
            if (stop > end)
                stop = end;
            if (pages[i] & present)
                scan_words(scan, (const uint64_t *)start, start, stop);
            start = stop;
        }
    }
}

static void scan_part(struct scan *scan, const struct leak_range *range, uint64_t start,
                      uint64_t end) {
    start = (start + 7) & ~7ul;
    end &= ~7ul;
    if (start >= end)
        return;
    scan->is_bare = range->bare;
    if (range->guarded)
        scan_guarded(scan, start, end);
    else if (range->sparse && end - start >= WORTH_ASKING && scan->search->pagemap >= 0)
        scan_sparse(scan, start, end);
    else
        scan_words(scan, (const uint64_t *)start, start, end);
}

static void begin(struct scan *scan, const struct search *search, leak_visit *visit,
                  void *context) {
    scan->search = search;
    scan->visit = visit;
    scan->context = context;
    scan->from = 0;
    scan->within = NULL;
    scan->count = 0;
}

void scan_range(const struct search *search, const struct leak_range *range, leak_visit *visit,
                void *context) {
    struct scan scan;
    begin(&scan, search, visit, context);
    scan_part(&scan, range, range->start, range->end);
    resolve(&scan);
}

static void scan_block(struct scan *scan, uint64_t start, uint64_t end) {
    const struct search *search = scan->search;
    const struct leak_range *range = scan->within;
    const struct leak_range *last = search->inner.at + search->inner.count;
    if (!range || start < range->start || start >= range->end)
        range = ranges_after(&search->inner, start);
    scan->within = range;
    for (; range && range < last && range->start < end; range++)
        scan_part(scan, range, start > range->start ? start : range->start,
                  end < range->end ? end : range->end);
}

void scan_blocks(const struct search *search, const uint32_t *numbers, uint32_t count,
                 leak_visit *visit, void *context) {
    const struct leak_blocks *blocks = &search->blocks;
    struct leak_lookup lookups[SCAN_MOST];
    struct {
        uint64_t start, end;
    } places[SCAN_MOST];
    struct scan scan;
    begin(&scan, search, visit, context);
    for (uint32_t i = 0; i < count; i++)
        blocks_locate(blocks, numbers[i], &lookups[i]);
    for (uint32_t i = 0; i < count; i++) {
        struct leak_block block;
        blocks_get(blocks, numbers[i], &lookups[i], &block);
        places[i].start = block.start;
        places[i].end = block.start + block.size;
        __builtin_prefetch((const void *)block.start);
        __builtin_prefetch(shadow_of(block.start));
    }
    for (uint32_t i = 0; i < count; i++) {
        scan.from = i;
        scan_block(&scan, places[i].start, places[i].end);
    }
    resolve(&scan);
}
