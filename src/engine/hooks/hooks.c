#include <stdlib.h>
#include <string.h>

#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/shadow_area.h"
#include "engine/space/place.h"
#include "engine/stack/stack.h"
#include "engine/task.h"
#include "tools/tools.h"
#include "wire/wire_target.h"

const struct tool *tool;

void hooks_init(void) {
    const char *name = wire_option("tool");
    tool = tools_find(name ? name : "none");
    if (!tool)
        fatal("the engine has no tool '%s'", name);
    stack_merged_frames = (unsigned)wire_option_number("merge-recursive-frames", 0);
    shadow_area_init(tool->shadow_distance);
    if (tool->shadow_distance)
        place_below(HIGH_SHADOWED_END);
    if (tool->memory_start)
        place_below(tool->memory_start);
    if (tool->counts_by_address)
        place_in_one_piece();
}

void hooks_thread_start(void) {
    shadow_area_thread();
    if (tool->thread_size <= sizeof self->tool_memory) {
        memset(self->tool_memory, 0, sizeof self->tool_memory);
        self->tool = self->tool_memory;
    } else {
        self->tool = calloc(1, tool->thread_size);
        if (!self->tool)
            fatal("out of memory for a thread's state");
    }
    TOOL_HOOK(thread_started);
}

void hooks_thread_end(void) {
    TOOL_HOOK(thread_ended);
    if (self->tool != self->tool_memory)
        free(self->tool);
    self->tool = NULL;
}

void hooks_end(void) {
    static int ended;
    if (__atomic_exchange_n(&ended, 1, __ATOMIC_SEQ_CST))
        return;
    print_end();
    if (!tool->end)
        return;
    wire_send_ending();
    tool->end();
}

void hooks_mapped(uint64_t start, uint64_t end, int prot) {
    if (start == end)
        return;
    shadow_area_clear(start, end);
    TOOL_HOOK(mapped, start, end, prot);
}

void hooks_unmapped(uint64_t start, uint64_t end) {
    shadow_area_clear(start, end);
    TOOL_HOOK(unmapped, start, end);
}

void hooks_moved(uint64_t to, uint64_t from, uint64_t size) {
    shadow_area_move(to, from, size);
    TOOL_HOOK(moved, to, from, size);
}
