#include "tools/memcheck/target/shadow/origins.h"

#include <stdatomic.h>

#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/shadow/chunks.h"
#include "tools/memcheck/target/shadow/origins_slow.h"
#include "tools/memcheck/target/shadow/shadow.h"

enum { GRANULE = 4 };

// ---- tags --------------------------------------------------------------------------------------

static _Atomic(struct origin_page *) *place_of(struct chunk *chunk, uint64_t address) {
    return &chunk->origins[address % CHUNK / ORIGIN_PAGE];
}

static struct origin_page *page_find(uint64_t address) {
    struct chunk *chunk = chunk_find(address);
    return chunk ? atomic_load_explicit(place_of(chunk, address), memory_order_acquire) : NULL;
}

static struct origin_page *page_make(uint64_t address) {
    struct origin_page *made = NULL, *other = NULL;
    struct chunk *chunk = chunk_make(address);
    if (!chunk)
        return NULL;
    tool_with_vectors(origins_make_page, &made);
    if (!made || atomic_compare_exchange_strong(place_of(chunk, address), &other, made))
        return made;
    tool_with_vectors(origins_drop_page, made); // another thread was faster
    return other;
}

static unsigned index_of(uint64_t address) {
    return address % ORIGIN_PAGE / GRANULE;
}

static uint64_t end_of(uint64_t unit, uint64_t address, uint64_t end) {
    uint64_t next = (address / unit + 1) * unit;
    return next < end ? next : end;
}

static uint64_t end_of_page(uint64_t address, uint64_t end) {
    return end_of(ORIGIN_PAGE, address, end);
}

// Bits of the lines that a part of a page touches.
static uint64_t lines_of(uint64_t start, uint64_t end) {
    unsigned first = start % ORIGIN_PAGE / ORIGIN_LINE,
             last = (end - 1) % ORIGIN_PAGE / ORIGIN_LINE;
    return (~0ul >> (63 - (last - first))) << first;
}

// The tag of an address, if some is kept there; *mark of the frame, 0: none.
static uint32_t tag_at(uint64_t address, uint32_t *mark) {
    struct origin_page *page = page_find(address);
    if (!page || !(page->used & lines_of(address, address + 1)))
        return 0;
    *mark = page->marks[index_of(address)];
    return page->tags[index_of(address)];
}

static void use_lines(struct origin_page *page, uint64_t lines) {
    if (lines & ~page->used)
        __atomic_fetch_or(&page->used, lines, __ATOMIC_RELAXED);
}

static void set_tag(uint64_t address, uint32_t tag, uint32_t mark) {
    struct origin_page *page = page_find(address);
    if (!page && !(tag && (page = page_make(address))))
        return;
    page->tags[index_of(address)] = tag;
    page->marks[index_of(address)] = mark;
    if (tag)
        use_lines(page, lines_of(address, address + 1));
}

static uint32_t mark_at(uint64_t address) {
    struct origin_frame frame;
    return origin_frame_at(address, &frame) ? frame.mark : 0;
}

void shadow_set_origin(uint64_t address, size_t size, uint32_t origin) {
    uint32_t mark = mark_at(address);
    uint64_t end = address + size;
    for (uint64_t at = address, next; at < end; at = next) {
        next = end_of_page(at, end);
        struct origin_page *page = page_find(at);
        if (!page && !(origin && (page = page_make(at))))
            continue;
        for (unsigned i = index_of(at); i <= index_of(next - 1); i++) {
            page->tags[i] = origin;
            page->marks[i] = mark;
        }
        if (origin)
            use_lines(page, lines_of(at, next));
    }
}

static void forget_in_page(struct origin_page *page, uint64_t start, uint64_t end) {
    if (!(page->used & lines_of(start, end)))
        return;
    for (unsigned i = index_of(start); i <= index_of(end - 1); i++)
        page->tags[i] = 0;
    uint64_t first_whole = (start + ORIGIN_LINE - 1) / ORIGIN_LINE * ORIGIN_LINE,
             end_whole = end / ORIGIN_LINE * ORIGIN_LINE;
    if (first_whole < end_whole)
        __atomic_fetch_and(&page->used, ~lines_of(first_whole, end_whole), __ATOMIC_RELAXED);
}

// The range is newly allocated. Of stack, marks tell.
static void forget(uint64_t start, size_t size) {
    uint64_t first, last, end = start + size;
    if (tool_own_stack(&first, &last) && start - first < last - first)
        return;
    for (uint64_t at = start, next; at < end; at = next) {
        if (!chunk_find(at)) {
            next = end_of(CHUNK, at, end);
            continue;
        }
        next = end_of_page(at, end);
        struct origin_page *page = page_find(at);
        if (page)
            forget_in_page(page, at, next);
    }
}

// ---- what was only allocated -------------------------------------------------------------------

static uint32_t heap_origin(uint64_t address) {
    union cell *cell = cell_of(address);
    bool is_cells = cell && address >= cell->start && address < cell->end;
    if (is_cells && cell->is_huge && address - cell->huge.block < cell->huge.older_size)
        return cell->huge.older_at;
    if (!declared_any()) {
        if (!is_cells)
            return 0;
        if (!cell->is_huge) {
            struct slab *slab = slab_of(&cell->segment, address);
            uint32_t slot = slab ? slot_of(slab, address) : 0;
            const struct block_note *note = slab && slot < slab->count ? &slab->notes[slot] : NULL;
            return note && word_state(atomic_load(&note->word)) == BLOCK_LIVE ? note->made_at : 0;
        }
    }
    struct origin_search search = {.address = address};
    tool_with_vectors(origins_search_heap, &search);
    return search.origin;
}

uint32_t shadow_origin(uint64_t address) {
    struct origin_frame frame;
    uint32_t mark = 0, tag = tag_at(address, &mark);
    if (tag && !mark)
        return tag;
    if (!origin_frame_at(address, &frame))
        return tag ? tag : heap_origin(address);
    return tag && (!frame.mark || frame.mark == mark) ? tag : frame.origin;
}

// ---- copies ------------------------------------------------------------------------------------

struct copying {
    uint64_t to, from;
    uint32_t mark;      // of the destination
    uint32_t allocated; // of the source, where nothing was stored
    bool is_known;      // the latter
};

static void copy_granule(struct copying *copying, size_t at) {
    uint8_t bits;
    uint32_t mark, tag;
    if (!shadow_state(copying->from + at, &bits) || !bits)
        return;
    tag = tag_at(copying->from + at, &mark);
    if (tag) {
        tag = shadow_origin(copying->from + at);
    } else {
        if (!copying->is_known)
            copying->allocated = shadow_origin(copying->from + at);
        copying->is_known = true;
        tag = copying->allocated;
    }
    set_tag(copying->to + at, tag, copying->mark);
}

static bool is_defined(uint64_t address, size_t size) {
    uint64_t word;
    __builtin_memcpy(&word, shadow_of(address), sizeof word);
    return size >= sizeof word && !word;
}

// As memmove moves the bytes.
static void copy(uint64_t to, uint64_t from, size_t size) {
    struct copying copying = {.to = to, .from = from, .mark = mark_at(to)};
    if (to < from) {
        for (size_t at = 0; at < size;) {
            if (is_defined(from + at, size - at)) {
                at += 8;
            } else {
                copy_granule(&copying, at);
                at += GRANULE;
            }
        }
    } else {
        for (size_t at = (size + GRANULE - 1) / GRANULE; at-- > 0;)
            copy_granule(&copying, at * GRANULE);
    }
}

// Whole pages. Their tags are no longer those of the old place.
static void move(uint64_t to, uint64_t from, size_t size) {
    forget(to, size);
    for (uint64_t at = from, next, end = from + size; at < end; at = next) {
        struct chunk *chunk = chunk_find(at);
        next = end_of(chunk ? ORIGIN_PAGE : CHUNK, at, end);
        struct origin_page *page = chunk ? page_find(at) : NULL;
        struct chunk *other = page ? chunk_make(to + (at - from)) : NULL;
        if (!other)
            continue;
        page = atomic_exchange(place_of(other, to + (at - from)), page);
        atomic_store(place_of(chunk, at), page);
    }
}

void origins_start(void) {
    static const struct shadow_watch watch = {forget, copy, move};
    shadow_watch = &watch;
}
