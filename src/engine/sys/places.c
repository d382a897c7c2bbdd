// Where the target's mappings may go.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/memory/room.h"
#include "engine/space/place.h"
#include "engine/sys/places.h"

enum { HUGE_PAGE = 2 << 20 };

bool place_is_possible(uint64_t start, uint64_t end) {
    uint64_t shadow = tool->shadow_distance & ~4095ul;
    if (start > end || end > ADDRESS_END)
        return false;
    if (shadow && start < shadow + SHADOWED_END + 4096 && end > shadow)
        return false;
    return start >= tool->memory_end || end <= tool->memory_start;
}

// The target may have it: it is free, or can be made so.
static bool is_for_asking(const struct space_range *range, bool may_move) {
    if (range->attributes.tag == SPACE_BRK)
        return !range->attributes.prot;
    if (range->attributes.tag != SPACE_ENGINE)
        return false;
    bool is_guard = range->start >= cache_start - ROOM_GUARD && range->end <= cache_start;
    return is_guard || (may_move && cache_takes(range->start, range->end));
}

bool place_is_unused(uint64_t start, uint64_t end, bool may_move) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (!is_for_asking(&range, may_move))
            return false;
    return true;
}

uint64_t place_mapped_until(uint64_t start, uint64_t end) {
    struct space_range range;
    uint64_t until = start;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range); until = range.end) {
        bool is_break_room = range.attributes.tag == SPACE_BRK && !range.attributes.prot;
        if (range.start != until || range.attributes.tag == SPACE_ENGINE || is_break_room)
            break;
    }
    return until;
}

// ---- claiming ----------------------------------------------------------------------------------

// The next part of [*at, end) that is free in the ledger; *at goes behind what follows it.
static bool next_free_part(uint64_t *at, uint64_t end, uint64_t *start, uint64_t *part_end) {
    struct space_range range;
    while (*at < end) {
        *start = *at;
        bool found = space_next(&target_space, at, end, &range);
        *part_end = found ? range.start : end;
        if (!found)
            *at = end;
        if (*part_end > *start)
            return true;
    }
    return false;
}

void place_unclaim(uint64_t start, uint64_t end) {
    uint64_t part, part_end;
    for (uint64_t at = start; next_free_part(&at, end, &part, &part_end);)
        munmap((void *)part, part_end - part);
}

int place_claim(uint64_t start, uint64_t end) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    uint64_t part, part_end;
    for (uint64_t at = start; next_free_part(&at, end, &part, &part_end);) {
        if (mmap((void *)part, part_end - part, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
            int status = -errno;
            place_unclaim(start, part);
            return status;
        }
    }
    return 0;
}

// ---- choosing ----------------------------------------------------------------------------------

// Modules go to the low area, so that their code is in reach of the cache: private mappings of the
// beginning of an ELF file, and whatever is executable from the start.
static bool looks_like_module(const struct place_request *request) {
    char magic[4];
    if (request->prot & PROT_EXEC)
        return true;
    return !(request->flags & (MAP_ANONYMOUS | MAP_SHARED)) && request->offset == 0 &&
           pread(request->fd, magic, 4, 0) == 4 && memcmp(magic, "\177ELF", 4) == 0;
}

static bool is_hint_good(const struct place_request *request, uint64_t hint, bool may_move) {
    uint64_t end = hint + request->size;
    if (!hint || end < hint || !place_is_possible(hint, end) ||
        !place_is_unused(hint, end, may_move))
        return false;
    if (request->flags & MAP_32BIT)
        return end <= CACHE_LIMIT;
    return !tool->shadow_distance || end <= SHADOWED_END;
}

static uint64_t pick_module_below(uint64_t end, uint64_t size) {
    return place_pick_below(&target_space, PLACE_MODULE, size, 4096, end);
}

uint64_t place_choose(const struct place_request *request, bool may_move) {
    uint64_t hint = request->hint & ~4095ul;
    if (hint && hint < LOW_START)
        hint = LOW_START; // vm.mmap_min_addr, usually
    if (is_hint_good(request, hint, may_move) && place_claim(hint, hint + request->size) == 0)
        return hint;
    if (request->flags & MAP_32BIT)
        return place_pick(&target_space, PLACE_LOW, request->size, 4096);
    // Whole huge pages are aligned as the kernel aligns them, so that it can use them.
    bool huge =
        request->flags & MAP_HUGETLB ||
        (request->flags & MAP_ANONYMOUS && request->size % HUGE_PAGE == 0 && !is_in_one_piece());
    enum place place = looks_like_module(request) ? PLACE_MODULE : PLACE_DATA;
    uint64_t at = place_pick(&target_space, place, request->size, huge ? HUGE_PAGE : 4096);
    if (!at)
        at = place_pick(&target_space, place, request->size, 4096);
    if (place == PLACE_MODULE && !(request->flags & MAP_ANONYMOUS) && !is_in_one_piece())
        at = former_avoid(at, request->size, request->fd, pick_module_below);
    return at;
}
