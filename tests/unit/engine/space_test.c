// The ledger of mappings against a model that keeps one record for each page.
#include "engine/space/space.h"
#include "any.h"
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define P SPACE_PAGE

static const struct space_attributes plain = {.prot = PROT_READ | PROT_WRITE};
static const struct space_attributes code = {.prot = PROT_READ | PROT_EXEC,
                                             .flags = SPACE_FILE,
                                             .tag = SPACE_MODULE,
                                             .dev = 1,
                                             .inode = 2,
                                             .offset = 0x3000};

TEST(splits_and_merges) {
    struct space space;
    struct space_range range;
    space_init(&space);
    CHECK_EQ(space_map(&space, 10 * P, 20 * P, &plain), 0);
    CHECK_EQ(space_map(&space, 20 * P, 30 * P, &plain), 0);
    CHECK_EQ(space.count, 1);
    CHECK_EQ(space_protect(&space, 12 * P, 14 * P, PROT_READ), 0);
    CHECK_EQ(space.count, 3);
    CHECK(space_find(&space, 13 * P + 5, &range));
    CHECK_EQ(range.start, 12 * P);
    CHECK_EQ(range.end, 14 * P);
    CHECK_EQ(range.attributes.prot, PROT_READ);
    CHECK_EQ(space_protect(&space, 12 * P, 14 * P, PROT_READ | PROT_WRITE), 0);
    CHECK_EQ(space.count, 1);
    CHECK_EQ(space_unmap(&space, 15 * P, 16 * P), 0);
    CHECK_EQ(space.count, 2);
    CHECK(space_find(&space, 15 * P, &range));
    CHECK_EQ(range.start, 16 * P);
    CHECK_EQ(range.end, 30 * P);
    CHECK(!space_find(&space, 30 * P, &range));
    CHECK_STR(space_check(&space) ?: "sound", "sound");
    space_destroy(&space);
}

TEST(file_offsets_follow_cuts) {
    struct space space;
    struct space_range range;
    space_init(&space);
    CHECK_EQ(space_map(&space, 10 * P, 20 * P, &code), 0);
    CHECK_EQ(space_unmap(&space, 12 * P, 13 * P), 0);
    CHECK(space_find(&space, 13 * P, &range));
    CHECK_EQ(range.attributes.offset, 0x3000 + 3 * P);
    // The same file at the offset that follows is the same range, at another offset it is not.
    struct space_attributes next = code;
    next.offset = 0x3000 + 2 * P;
    CHECK_EQ(space_map(&space, 12 * P, 13 * P, &next), 0);
    CHECK_EQ(space.count, 1);
    CHECK_EQ(space_map(&space, 20 * P, 21 * P, &next), 0);
    CHECK_EQ(space.count, 2);
    uintptr_t at = 15 * P;
    CHECK(space_next(&space, &at, 18 * P, &range));
    CHECK_EQ(range.start, 15 * P);
    CHECK_EQ(range.end, 18 * P);
    CHECK_EQ(range.attributes.offset, 0x3000 + 5 * P);
    CHECK(!space_next(&space, &at, 18 * P, &range));
    space_destroy(&space);
}

TEST(marks_without_touching_rights) {
    struct space space;
    struct space_range range;
    space_init(&space);
    CHECK_EQ(space_map(&space, 10 * P, 20 * P, &code), 0);
    CHECK_EQ(space_mark(&space, 11 * P, 12 * P, SPACE_CODE, 0), 0);
    CHECK_EQ(space.count, 3);
    CHECK(space_find(&space, 11 * P, &range));
    CHECK_EQ(range.attributes.flags, SPACE_FILE | SPACE_CODE);
    CHECK_EQ(range.attributes.prot, PROT_READ | PROT_EXEC);
    CHECK_EQ(space_mark(&space, 0, 100 * P, 0, SPACE_CODE), 0);
    CHECK_EQ(space.count, 1);
    space_destroy(&space);
}

TEST(picks_gaps) {
    struct space space;
    space_init(&space);
    CHECK_EQ(space_pick(&space, P, P, 5 * P, 6 * P, false), 5 * P);
    CHECK_EQ(space_pick(&space, P + 1, P, 5 * P, 6 * P, false), 0);
    CHECK_EQ(space_map(&space, 10 * P, 20 * P, &plain), 0);
    CHECK_EQ(space_map(&space, 22 * P, 30 * P, &plain), 0);
    CHECK_EQ(space_pick(&space, 2 * P, 0, 10 * P, 40 * P, false), 20 * P);
    CHECK_EQ(space_pick(&space, 3 * P, 0, 10 * P, 40 * P, false), 30 * P);
    CHECK_EQ(space_pick(&space, 2 * P, 0, 10 * P, 30 * P, true), 20 * P);
    CHECK_EQ(space_pick(&space, 3 * P, 0, 8 * P, 30 * P, true), 0);
    CHECK_EQ(space_pick(&space, 3 * P, 0, 7 * P, 30 * P, true), 7 * P);
    CHECK_EQ(space_pick(&space, P, 16 * P, 10 * P, 70 * P, false), 32 * P);
    CHECK_EQ(space_pick(&space, P, 16 * P, 10 * P, 70 * P, true), 64 * P);
    CHECK_EQ(space_pick(&space, P, 3 * P, 10 * P, 70 * P, true), 0);
    CHECK_EQ(space_pick(&space, 0, P, 10 * P, 70 * P, true), 0);
    CHECK_EQ(space_pick(&space, SIZE_MAX, P, 10 * P, 70 * P, true), 0);
    space_destroy(&space);
}

TEST(refuses_bad_intervals) {
    struct space space;
    space_init(&space);
    CHECK_EQ(space_map(&space, P, P, &plain), -EINVAL);
    CHECK_EQ(space_map(&space, 2 * P, P, &plain), -EINVAL);
    CHECK_EQ(space_map(&space, 1, P, &plain), -EINVAL);
    CHECK_EQ(space_unmap(&space, P, P + 1), -EINVAL);
    CHECK_EQ(space_protect(&space, 1, P, 0), -EINVAL);
    CHECK_EQ(space.count, 0);
    space_destroy(&space);
}

// ---- the model

#define PAGES 512
#define BASE  16 // the model's first page

struct page {
    bool mapped;
    struct space_attributes attributes;
};

static struct page model[PAGES];
static uintptr_t page_address(size_t page) {
    return (BASE + page) * P;
}

static bool same_attributes(const struct space_attributes *a, const struct space_attributes *b) {
    return a->prot == b->prot && a->flags == b->flags && a->tag == b->tag && a->dev == b->dev &&
           a->inode == b->inode && a->offset == b->offset;
}

static void random_map(struct space *space, size_t first, size_t end) {
    struct space_attributes attributes = {.prot = any(4), .tag = any(2)};
    if (any(2)) {
        attributes.flags = SPACE_FILE;
        attributes.dev = 1;
        attributes.inode = any(2);
        // Mostly the offset that makes neighbours mergeable.
        attributes.offset = (first + (any(4) == 0)) * P;
    }
    CHECK_EQ(space_map(space, page_address(first), page_address(end), &attributes), 0);
    for (size_t i = first; i < end; i++) {
        model[i] = (struct page){true, attributes};
        if (attributes.flags & SPACE_FILE)
            attributes.offset += P;
    }
}

static void random_change(struct space *space) {
    size_t first = any(PAGES), length = 1 + any(any(8) ? 8 : 100);
    size_t end = first + length < PAGES ? first + length : PAGES;
    uintptr_t start_address = page_address(first), end_address = page_address(end);
    uint32_t prot = any(4);
    switch (any(6)) {
    case 0:
    case 1:
        random_map(space, first, end);
        break;
    case 2:
    case 3:
        CHECK_EQ(space_unmap(space, start_address, end_address), 0);
        for (size_t i = first; i < end; i++)
            model[i].mapped = false;
        break;
    case 4:
        CHECK_EQ(space_protect(space, start_address, end_address, prot), 0);
        for (size_t i = first; i < end; i++)
            model[i].attributes.prot = prot;
        break;
    case 5:
        CHECK_EQ(space_mark(space, start_address, end_address, prot & 1 ? SPACE_CODE : 0,
                            prot & 1 ? 0 : SPACE_CODE),
                 0);
        for (size_t i = first; i < end; i++)
            model[i].attributes.flags =
                (model[i].attributes.flags & ~SPACE_CODE) | (prot & 1 ? SPACE_CODE : 0);
    }
}

static size_t model_pick(size_t pages, size_t align, size_t lo, size_t hi, bool top_down) {
    size_t found = 0;
    for (size_t i = lo; i + pages <= hi; i++) {
        if ((BASE + i) % align)
            continue;
        size_t run = 0;
        while (run < pages && !model[i + run].mapped)
            run++;
        if (run < pages)
            continue;
        found = BASE + i;
        if (!top_down)
            break;
    }
    return found;
}

static void compare_questions(const struct space *space) {
    size_t lo = any(PAGES), hi = lo + any(PAGES - lo);
    size_t pages = 1 + any(12), align = 1u << any(4);
    bool top_down = any(2);
    CHECK_EQ(space_pick(space, pages * P - any(P), align * P, page_address(lo), page_address(hi),
                        top_down),
             model_pick(pages, align, lo, hi, top_down) * P);
    size_t mapped = 0;
    for (size_t i = lo; i < hi; i++)
        mapped += model[i].mapped;
    CHECK_EQ(space_is_free(space, page_address(lo), page_address(hi)), mapped == 0);
    CHECK_EQ(space_is_mapped(space, page_address(lo), page_address(hi)), mapped == hi - lo);
    uintptr_t at = page_address(lo);
    struct space_range range;
    while (space_next(space, &at, page_address(hi), &range))
        mapped -= (range.end - range.start) / P;
    CHECK_EQ(mapped, 0);
}

static void compare_pages(const struct space *space) {
    for (size_t i = 0; i < PAGES; i++) {
        struct space_range range;
        uintptr_t address = page_address(i);
        bool found = space_find(space, address, &range) && range.start <= address;
        CHECK_EQ(found, model[i].mapped);
        if (!found)
            continue;
        if (range.attributes.flags & SPACE_FILE)
            range.attributes.offset += address - range.start;
        CHECK(same_attributes(&range.attributes, &model[i].attributes));
    }
}

TEST(agrees_with_the_model) {
    struct space space;
    space_init(&space);
    size_t most = 0;
    for (int i = 0; i < 100000; i++) {
        random_change(&space);
        compare_questions(&space);
        if (i % 16 == 0) {
            compare_pages(&space);
            CHECK_STR(space_check(&space) ?: "sound", "sound");
        }
        most = space.count > most ? space.count : most;
    }
    NOTE("model: 100000 operations, at most %zu ranges", most);
    CHECK(most > 100);
    space_destroy(&space);
}

// ---- size and speed

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

TEST(holds_many_ranges) {
    enum { COUNT = 100000 };
    struct space space;
    struct space_range range;
    space_init(&space);
    double start = seconds();
    for (size_t i = 0; i < COUNT; i++) {
        // A stride prime to the count visits all places in scattered order.
        uintptr_t place = (1 + 2 * (i * 7919 % COUNT)) * P;
        CHECK_EQ(space_map(&space, place, place + P, &plain), 0);
    }
    double mapped = seconds();
    CHECK_EQ(space.count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(space_find(&space, 2 * i * P, &range) && range.start == (1 + 2 * i) * P);
    double found = seconds();
    for (size_t i = 0; i < COUNT; i++)
        CHECK_EQ(space_pick(&space, 2 * P, P, P, 4 * COUNT * P, false), 2 * COUNT * P);
    double picked = seconds();
    CHECK_STR(space_check(&space) ?: "sound", "sound");
    CHECK_EQ(space_unmap(&space, 0, 2 * COUNT * P), 0);
    CHECK_EQ(space.count, 0);
    NOTE("%d ranges: map %.0f ns, find %.0f ns, pick %.0f ns each", COUNT,
         (mapped - start) / COUNT * 1e9, (found - mapped) / COUNT * 1e9,
         (picked - found) / COUNT * 1e9);
    space_destroy(&space);
}

UNIT_MAIN()
