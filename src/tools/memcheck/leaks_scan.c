#include "tools/memcheck/leaks_search.h"

#include <unistd.h>

enum {
    PAGE = 4096,
    PAGES = 512,            // looked up at once
    WORTH_ASKING = 1 << 18, // bytes from which on the kernel is asked which pages were touched
};

// Words at `words`, which are those of the target's memory at `start`.
static void scan_words(const struct search *search, const uint64_t *words, uint64_t start,
                       uint64_t end, leak_visit *visit, void *context) {
    const struct leak_blocks *blocks = &search->blocks;
    uint64_t lowest = blocks->lowest, span = blocks->span;
    for (uint64_t at = start; at < end; at += 8, words++) {
        uint64_t value = *words;
        if (value - lowest >= span || !word_is_known(at))
            continue;
        uint32_t block = blocks_find(blocks, value);
        if (block != NO_BLOCK)
            visit(context, at, value, block);
    }
}

// Reading may fault, as beyond the end of a file.
static void scan_guarded(const struct search *search, uint64_t start, uint64_t end,
                         leak_visit *visit, void *context) {
    uint64_t page[PAGE / 8];
    while (start < end) {
        uint64_t stop = (start & -(uint64_t)PAGE) + PAGE;
        if (stop > end)
            stop = end;
        if (tool_read(page, start, stop - start) == 0)
            scan_words(search, page, start, stop, visit, context);
        start = stop;
    }
}

// Only what was ever touched: a page that was not is all zero, and reading it would cost memory.
static void scan_sparse(const struct search *search, uint64_t start, uint64_t end,
                        leak_visit *visit, void *context) {
    const uint64_t present = 1ul << 63 | 1ul << 62; // in memory, or swapped out
    uint64_t pages[PAGES];
    while (start < end) {
        uint64_t first = start / PAGE, count = (end + PAGE - 1) / PAGE - first;
        if (count > PAGES)
            count = PAGES;
        ssize_t got = pread(search->pagemap, pages, count * 8, (off_t)(first * 8));
        if (got != (ssize_t)(count * 8)) {
            scan_words(search, (const uint64_t *)start, start, end, visit, context);
            return;
        }
        for (uint64_t i = 0; i < count; i++) {
            uint64_t stop = (first + i + 1) * PAGE;
            if (stop > end)
                stop = end;
            if (pages[i] & present)
                scan_words(search, (const uint64_t *)start, start, stop, visit, context);
            start = stop;
        }
    }
}

void scan_range(const struct search *search, const struct leak_range *range, uint64_t start,
                uint64_t end, leak_visit *visit, void *context) {
    start = (start + 7) & ~7ul;
    end &= ~7ul;
    if (start >= end)
        return;
    if (range->guarded)
        scan_guarded(search, start, end, visit, context);
    else if (range->sparse && end - start >= WORTH_ASKING && search->pagemap >= 0)
        scan_sparse(search, start, end, visit, context);
    else
        scan_words(search, (const uint64_t *)start, start, end, visit, context);
}

void scan_block(const struct search *search, uint32_t block, leak_visit *visit, void *context) {
    uint64_t start = search->blocks.starts[block];
    uint64_t end = start + search->blocks.blocks[block].size;
    const struct leak_range *range = ranges_after(&search->inner, start);
    const struct leak_range *last = search->inner.at + search->inner.count;
    for (; range && range < last && range->start < end; range++)
        scan_range(search, range, start > range->start ? start : range->start,
                   end < range->end ? end : range->end, visit, context);
}

uint32_t scan_next(const struct search *search, uint32_t block, uint64_t *at) {
    uint64_t end = search->blocks.starts[block] + search->blocks.blocks[block].size;
    const struct leak_range *range = ranges_after(&search->inner, *at);
    const struct leak_range *last = search->inner.at + search->inner.count;
    for (; range && range < last && range->start < end; range++) {
        if (*at < range->start)
            *at = range->start;
        uint64_t stop = end < range->end ? end : range->end;
        for (*at = (*at + 7) & ~7ul; *at + 8 <= stop; *at += 8) {
            uint64_t value = *(const uint64_t *)*at;
            if (value - search->blocks.lowest >= search->blocks.span || !word_is_known(*at))
                continue;
            uint32_t found = blocks_find(&search->blocks, value);
            if (found != NO_BLOCK)
                return found;
        }
    }
    return NO_BLOCK;
}
