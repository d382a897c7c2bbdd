#include "profile/heap/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"

// The first piece that ends behind an address.
static size_t first_behind(const struct regions *regions, uint64_t address) {
    return search_first(at, 0, regions->count, regions->pieces[at].end > address);
}

static void insert(struct regions *regions, size_t at, const struct regions_piece *piece) {
    size_t behind = regions->count - at;
    vector_push(regions->pieces, regions->count);
    memmove(&regions->pieces[at + 1], &regions->pieces[at], behind * sizeof *regions->pieces);
    regions->pieces[at] = *piece;
}

static void take_out(struct regions *regions, size_t at) {
    regions->count--;
    memmove(&regions->pieces[at], &regions->pieces[at + 1],
            (regions->count - at) * sizeof *regions->pieces);
}

void regions_unmap(struct regions *regions, uint64_t start, uint64_t size,
                   void (*tell)(void *context, const struct heap_region *region), void *context) {
    uint64_t end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
    size_t at = first_behind(regions, start);
    while (at < regions->count && regions->pieces[at].start < end) {
        struct regions_piece piece = regions->pieces[at];
        uint64_t from = piece.start > start ? piece.start : start;
        uint64_t to = piece.end < end ? piece.end : end;
        take_out(regions, at);
        if (piece.start < from) {
            struct regions_piece left = piece;
            left.end = from;
            insert(regions, at++, &left);
        }
        if (piece.end > to) {
            struct regions_piece right = piece;
            right.start = to;
            insert(regions, at++, &right);
        }
        tell(context, &(struct heap_region){.kind = piece.kind,
                                            .number = piece.number,
                                            .bytes = to - from,
                                            .stack = piece.stack});
    }
}

void regions_map(struct regions *regions, uint64_t start, uint64_t size, enum heap_region_kind kind,
                 uint32_t stack, void (*tell)(void *context, const struct heap_region *region),
                 void *context) {
    regions_unmap(regions, start, size, tell, context);
    struct regions_piece piece = {start, start + size, ++regions->mapped, kind, stack};
    insert(regions, first_behind(regions, start), &piece);
    tell(context, &(struct heap_region){.is_mapped = true,
                                        .kind = kind,
                                        .number = piece.number,
                                        .bytes = size,
                                        .stack = stack});
}

void regions_free(struct regions *regions) {
    free(regions->pieces);
    *regions = (struct regions){0};
}
