#include "tools/memcheck/origins_slow.h"

#include <stdlib.h>

#include "engine/tool.h"
#include "tools/memcheck/errors.h"
#include "tools/memcheck/heap.h"
#include "tools/memcheck/stacks.h"

void origins_make_page(void *made) {
    *(struct origin_page **)made = calloc(1, sizeof(struct origin_page));
}

void origins_search_heap(void *argument) {
    struct origin_search *search = argument;
    struct heap_block block;
    if (heap_find(search->address, &block) && block.state == HEAP_LIVE)
        search->origin = block.made_at;
}

// The supervisor shows the function as a whole.
void origins_search_stack(void *argument) {
    struct origin_search *search = argument;
    struct tool_frame frame;
    if (!tool_frame_of(search->address, &frame) || frame.frame < 0)
        return;
    uint32_t stack = stack_intern(&frame.pc, 1);
    if (stack)
        search->origin = stack | ORIGIN_STACK;
}
