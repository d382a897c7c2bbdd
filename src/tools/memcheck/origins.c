#include "tools/memcheck/origins.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/tool.h"
#include "tools/memcheck/errors.h"
#include "tools/memcheck/origins_slow.h"
#include "tools/memcheck/shadow.h"

enum { BUCKETS = 1 << 16, KNOWN = 1024, RSP = 4 };

static struct origin_page *_Atomic pages[BUCKETS];
static atomic_bool any_pages;

static _Atomic(struct origin_page *) *bucket_of(uint64_t number) {
    return &pages[number * 0x9e3779b97f4a7c15ull >> 48];
}

static struct origin_page *page_find(uint64_t number) {
    struct origin_page *page =
        atomic_load_explicit(bucket_of(number), memory_order_acquire);
    while (page && page->number != number)
        page = page->next;
    return page;
}

static struct origin_page *page_make(uint64_t number) {
    struct origin_page *made = NULL;
    tool_with_vectors(origins_make_page, &made);
    if (!made)
        return NULL;
    made->number = number;
    made->next = atomic_load(bucket_of(number));
    while (!atomic_compare_exchange_weak(bucket_of(number), &made->next, made))
        continue; // two pages of one number: the newer one counts
    atomic_store(&any_pages, true);
    return made;
}

void shadow_set_origin(uint64_t address, size_t size, uint32_t origin) {
    for (uint64_t at = address & ~3ul; at < address + size; at += 4) {
        struct origin_page *page = page_find(at / ORIGIN_PAGE);
        if (!page && origin)
            page = page_make(at / ORIGIN_PAGE);
        if (page)
            page->tags[at % ORIGIN_PAGE / 4] = origin;
    }
}

// The range is newly allocated.
static void forget(uint64_t start, size_t size) {
    if (!atomic_load_explicit(&any_pages, memory_order_relaxed))
        return;
    for (uint64_t at = start; at < start + size;) {
        uint64_t end = (at / ORIGIN_PAGE + 1) * ORIGIN_PAGE;
        if (end > start + size)
            end = start + size;
        if (page_find(at / ORIGIN_PAGE))
            shadow_set_origin(at, end - at, 0);
        at = end;
    }
}

// ---- what was only allocated -------------------------------------------------------------------

// Unwinding takes time: the same instruction meets the same place of its frame again.
static _Thread_local struct {
    uint64_t pc, offset;
    uint32_t origin;
} known[KNOWN];

static uint32_t of_stack(uint64_t address) {
    uint64_t pc = tool_pc(), offset = address - tool_register(RSP);
    unsigned slot = (pc * 31 + offset) * 0x9e3779b97f4a7c15ull >> 54;
    if (known[slot].pc != pc || known[slot].offset != offset) {
        struct origin_search search = {.address = address};
        tool_with_vectors(origins_search_stack, &search);
        known[slot].pc = pc;
        known[slot].offset = offset;
        known[slot].origin = search.origin;
    }
    return known[slot].origin;
}

uint32_t shadow_origin(uint64_t address) {
    struct origin_page *page = page_find(address / ORIGIN_PAGE);
    if (page && page->tags[address % ORIGIN_PAGE / 4])
        return page->tags[address % ORIGIN_PAGE / 4];
    uint64_t start, end;
    if (tool_own_stack(&start, &end) && address - start < end - start)
        return of_stack(address);
    struct origin_search search = {.address = address};
    tool_with_vectors(origins_search_heap, &search);
    return search.origin;
}

static void copy(uint64_t to, uint64_t from, size_t size) {
    uint8_t bits;
    for (size_t at = 0; at < size; at += 4)
        if (shadow_state(from + at, &bits) && bits)
            shadow_set_origin(to + at, 1, shadow_origin(from + at));
}

void origins_start(void) {
    static const struct shadow_watch watch = {forget, copy};
    shadow_watch = &watch;
}
