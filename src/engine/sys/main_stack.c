// The initial stack when the program changes its limit.
//
// The kernel lets the stack grow up to the limit of the moment, and leaves in place what has grown.
// Here the stack is mapped at once, as large as the limit permits. So a new limit moves its lower
// end: further down into the room that is kept free for this (load/load.h), or up to what is in
// use.
#include <sys/mman.h>

#include "engine/hooks/hooks.h"
#include "engine/load/load.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

static void set_start(uint64_t start) {
    process.stack_start = start;
    task_lock_list();
    for (struct task *task = (struct task *)task_first(); task; task = task->next)
        if (task->stack_end == process.stack_end)
            task->stack_start = start;
    task_unlock_list();
}

// Where the room ends that was kept, or what is left of it.
static uint64_t room_start(void) {
    struct space_range range;
    uint64_t below = process.stack_start - SPACE_PAGE;
    bool found = space_find(&target_space, below, &range) && range.start <= below &&
                 range.attributes.tag == SPACE_GUARD;
    return found ? range.start : process.stack_start;
}

// Both return where the stack begins then.
static uint64_t grow(uint64_t start) {
    uint64_t old = process.stack_start, room = room_start();
    struct space_range range;
    if (start < room + SPACE_PAGE)
        start = room + SPACE_PAGE;
    if (start >= old || !space_find(&target_space, old, &range))
        return old;
    uint64_t guard = start - SPACE_PAGE, old_guard = old - SPACE_PAGE;
    int native = space_native_prot((int)range.attributes.prot);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED_NOREPLACE;
    if (mmap((void *)guard, old_guard - guard, native, flags, -1, 0) != (void *)guard)
        return old;
    mprotect((void *)guard, SPACE_PAGE, PROT_NONE);
    mprotect((void *)old_guard, SPACE_PAGE, native);
    space_map(&target_space, start, old, &range.attributes);
    hooks_mapped(start, old, (int)range.attributes.prot);
    return start;
}

// The lowest page in [start, end) that has been touched, or end.
static uint64_t first_touched(uint64_t start, uint64_t end) {
    enum { AT_ONCE = 1024 };
    unsigned char resident[AT_ONCE];
    for (uint64_t at = start; at < end; at += AT_ONCE * SPACE_PAGE) {
        uint64_t pages = (end - at) / SPACE_PAGE;
        pages = pages < AT_ONCE ? pages : AT_ONCE;
        if (mincore((void *)at, pages * SPACE_PAGE, resident) != 0)
            return start;
        for (uint64_t i = 0; i < pages; i++)
            if (resident[i] & 1)
                return at + i * SPACE_PAGE;
    }
    return end;
}

// Only the stack's own thread knows how much of it is in use.
static uint64_t shrink(uint64_t start) {
    uint64_t old = process.stack_start, used = (self->gpr[RSP] - RED_ZONE) & -SPACE_PAGE;
    if (used < old || used >= process.stack_end)
        return old;
    start = first_touched(old, start < used ? start : used);
    if (start <= old)
        return old;
    const struct space_attributes guarding = {.tag = SPACE_GUARD};
    uint64_t guard = start - SPACE_PAGE, old_guard = old - SPACE_PAGE;
    munmap((void *)old_guard, guard - old_guard);
    mprotect((void *)guard, SPACE_PAGE, PROT_NONE);
    memory_changed(old, start);
    space_map(&target_space, old, start, &guarding);
    hooks_unmapped(old, start);
    return start;
}

void main_stack_limit(uint64_t limit) {
    uint64_t start = process.stack_end - load_stack_size(limit, 0);
    // A child that shares memory has limits of its own, and not a stack.
    if (self->is_borrowed || task_shares_memory())
        return;
    memory_write_lock();
    start = start < process.stack_start ? grow(start) : shrink(start);
    memory_unlock();
    set_start(start);
}
