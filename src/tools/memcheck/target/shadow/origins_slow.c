#include "tools/memcheck/target/shadow/origins_slow.h"

#include <stdlib.h>

#include "base/x86.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/shared/stacks.h"

enum { FRAMES = 64, SLOT = 8 };

void origins_make_page(void *made) {
    *(struct origin_page **)made = calloc(1, sizeof(struct origin_page));
}

void origins_drop_page(void *page) {
    free(page);
}

void origins_make_known(void *made) {
    *(struct origin_known_frames **)made = calloc(1, sizeof(struct origin_known_frames));
}

void origins_thread_ended(void) {
    free(memcheck_thread()->origin_frames);
    memcheck_thread()->origin_frames = NULL;
}

void origins_search_heap(void *argument) {
    struct origin_search *search = argument;
    struct heap_block block;
    if (heap_find(search->address, &block) && block.state == HEAP_LIVE)
        search->origin = block.made_at;
}

// ---- stack -------------------------------------------------------------------------------------

// The supervisor shows the function as a whole.
static uint32_t origin_of(const struct tool_stack_frame *frame) {
    uint32_t stack = stack_intern(&frame->pc, 1);
    return stack ? stack | ORIGIN_STACK : 0;
}

// What a handler finds close to the stack pointer that it starts with was made by the kernel, where
// the signal came. A call makes these bytes anew.
static bool is_of_signal(const struct tool_stack_frame *frame, uint64_t address) {
    return frame->is_handler && address >= frame->end - SLOT - RED_ZONE;
}

void origins_search_stack(void *argument) {
    const struct origin_frame_search *search = argument;
    struct tool_stack_frame frames[KNOWN_RETURNS];
    struct origin_known *known = search->known;
    uint64_t rsp = tool_register(RSP);
    size_t count = tool_frames_to(search->address, frames, KNOWN_RETURNS);
    *known = (struct origin_known){.pc = tool_pc(), .distance = search->address - rsp};
    for (size_t i = 0; i < count; i++) {
        struct origin_return *its = &known->returns[i];
        if (frames[i].is_trampoline || tool_read(&its->address, frames[i].end - SLOT, SLOT) != 0)
            count = 0; // what stands below the end of a trampoline changes
        its->distance = frames[i].end - SLOT - rsp;
    }
    known->count = count;
    known->is_beyond = !count;
    if (!count)
        return;
    known->is_handler = is_of_signal(&frames[count - 1], search->address);
    known->origin = origin_of(&frames[count - 1]);
}

void origins_search_far(void *argument) {
    struct origin_search *search = argument;
    struct tool_stack_frame frames[FRAMES];
    size_t count = tool_frames_to(search->address, frames, FRAMES);
    if (!count)
        return;
    search->origin = origin_of(&frames[count - 1]);
    if (!is_of_signal(&frames[count - 1], search->address))
        return;
    uint64_t pcs[FRAMES];
    size_t all = tool_stack(pcs, FRAMES), inner = count + 1; // the trampoline too
    uint32_t stack = inner < all ? stack_intern(pcs + inner, all - inner) : 0;
    if (stack)
        search->origin = stack | ORIGIN_SIGNAL;
}
