// The frame that an address on the stack lies in.
//
// Unwinding takes time, and the same instruction meets the same place of its frame again. What was
// found is kept by pc and distance from the stack pointer, together with the return addresses that
// led there: where they are still the same, so is the layout of the frames.
#include "base/hash.h"
#include "base/x86.h"
#include "engine/tool.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/shadow/origins_slow.h"

enum { FARTHEST = 1 << 20 };

static struct origin_known *slot_of_place(struct origin_known_frames *known, uint64_t pc,
                                          uint64_t distance) {
    return &known->frames[hash_bucket(pc * 31 + distance, KNOWN_BITS)];
}

// Where the thread runs on a stack that it was not started on, it may end close by.
static bool read_word(uint64_t address, bool is_own, uint64_t *word) {
    if (!is_own)
        return tool_read(word, address, sizeof *word) == 0;
    *word = *(const uint64_t *)address;
    return true;
}

static bool still_holds(const struct origin_known *known, uint64_t rsp, uint64_t own_end) {
    for (unsigned i = 0; i < known->count; i++) {
        uint64_t at = rsp + known->returns[i].distance, word;
        if (own_end && at + sizeof word > own_end)
            return false;
        if (!read_word(at, own_end != 0, &word) || word != known->returns[i].address)
            return false;
    }
    return true;
}

// The frame's end and the place that it returns to.
static uint32_t mark_of(const struct origin_known *known, uint64_t rsp) {
    if (!known->count || known->is_beyond)
        return 0;
    const struct origin_return *last = &known->returns[known->count - 1];
    return (hash_bucket((rsp + last->distance) ^ last->address << 20, 32)) | 1;
}

bool origin_frame_at(uint64_t address, struct origin_frame *frame) {
    struct memcheck_thread *thread = memcheck_thread();
    uint64_t rsp = tool_register(RSP), start, end;
    bool has_own = tool_own_stack(&start, &end), is_own = has_own && rsp - start < end - start;
    if (is_own ? address - start >= end - start : address - (rsp - RED_ZONE) >= FARTHEST)
        return false;
    if (!thread->origin_frames)
        tool_with_vectors(origins_make_known, &thread->origin_frames);
    if (!thread->origin_frames)
        return false;
    struct origin_known *known = slot_of_place(thread->origin_frames, tool_pc(), address - rsp);
    if (known->pc != tool_pc() || known->distance != address - rsp ||
        !still_holds(known, rsp, is_own ? end : 0)) {
        struct origin_frame_search search = {.address = address, .known = known};
        tool_with_vectors(origins_search_stack, &search);
    }
    uint32_t origin = known->origin;
    if (known->is_beyond || known->is_handler) {
        struct origin_search search = {.address = address};
        tool_with_vectors(origins_search_far, &search);
        origin = search.origin;
    }
    *frame = (struct origin_frame){mark_of(known, rsp), origin};
    return is_own || origin;
}
