// What a tool may know of the target's memory and threads as a whole.
#include <string.h>
#include <time.h>

#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/stack/stack.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

enum { FRAMES = 500 };

// ---- memory ------------------------------------------------------------------------------------

bool tool_mapping_at(uint64_t address, struct tool_mapping *mapping) {
    struct space_range range;
    memory_read_lock();
    bool found = space_find(&target_space, address, &range);
    while (found && (range.attributes.tag == SPACE_ENGINE ||
                     (range.attributes.tag == SPACE_BRK && !range.attributes.prot)))
        found = space_find(&target_space, range.end, &range);
    memory_unlock();
    if (!found)
        return false;
    *mapping = (struct tool_mapping){.start = range.start,
                                     .end = range.end,
                                     .prot = range.attributes.prot,
                                     .is_stack = range.attributes.tag == SPACE_STACK,
                                     .is_shared = range.attributes.flags & SPACE_SHARED,
                                     .is_file = range.attributes.flags & SPACE_FILE,
                                     .is_module = range.attributes.tag == SPACE_MODULE,
                                     .is_brk = range.attributes.tag == SPACE_BRK};
    return true;
}

uint64_t tool_map(size_t size, size_t alignment) {
    return memory_map_anonymous(size, alignment);
}

bool tool_may_map(size_t size) {
    memory_read_lock();
    bool permitted = limits_permit_tool(size);
    memory_unlock();
    return permitted;
}

bool tool_map_at(uint64_t start, size_t size) {
    return memory_map_at(start, size);
}

bool tool_move_pages(uint64_t to, uint64_t from, size_t size) {
    return memory_move_pages(to, from, size);
}

void tool_unmap(uint64_t start, size_t size) {
    memory_unmap(start, size);
}

// ---- threads -----------------------------------------------------------------------------------

static bool was_busy; // of who has stopped the others

void tool_stop_threads(void) {
    bool busy = self->busy;
    task_stop_others();
    was_busy = busy;
}

void tool_resume_threads(void) {
    bool busy = was_busy;
    task_resume_others();
    if (busy)
        task_become_busy();
}

static void tell(const struct task *task, void (*function)(const struct tool_thread *, void *),
                 void *argument) {
    struct tool_thread thread = {.id = task->number,
                                 .registers = task->gpr,
                                 .pc = task->pc,
                                 .fs_base = task->fs_base,
                                 .state = task->tool,
                                 .stack_start = task->stack_start,
                                 .stack_end = task->stack_end};
    function(&thread, argument);
}

void tool_each_thread(void (*function)(const struct tool_thread *, void *), void *argument) {
    tell(self, function, argument);
    for (const struct task *task = task_first(); task; task = task->next)
        if (task != self)
            tell(task, function, argument);
}

int tool_thread_number(void) {
    return self->number;
}

__attribute__((target("general-regs-only"))) bool tool_own_stack(uint64_t *start, uint64_t *end) {
    *start = self->stack_start;
    *end = self->stack_end;
    return *end != 0;
}

// The frame that the address lies in: frames end where the next one begins. registers: NULL for the
// calling thread.
static void find_frame(uint64_t address, const struct task_registers *registers,
                       struct tool_frame *frame) {
    uint64_t pcs[FRAMES], ends[FRAMES];
    uint64_t sp = registers ? registers->gpr[RSP] : self->gpr[RSP];
    if (address < sp)
        frame->below = (int64_t)(sp - address);
    if (frame->below > RED_ZONE)
        return;
    size_t count = stack_frames(registers, pcs, ends, FRAMES), i = 0;
    while (i < count && address >= ends[i])
        i++;
    if (i == count)
        return;
    frame->frame = frame->below ? -1 : (int)i;
    frame->pc = pcs[i];
    frame->end = ends[i];
}

bool tool_frame_of(uint64_t address, struct tool_frame *frame) {
    *frame = (struct tool_frame){.frame = -1};
    if (address - self->stack_start < self->stack_end - self->stack_start) {
        frame->thread = self->number;
        find_frame(address, NULL, frame);
        return true;
    }
    struct task_registers registers;
    bool known;
    frame->thread = task_with_stack(address, &registers, &known);
    if (known)
        find_frame(address, &registers, frame);
    return frame->thread != 0;
}

// What it was interrupted in is over soon, unless it waits for this very thread.
bool tool_stack_pointer_around(uint64_t address, uint64_t *stack_pointer) {
    enum { TRIES = 200, PAUSE = 20000 };
    struct task_registers registers;
    bool known;
    for (unsigned i = 0; i < TRIES; i++) {
        if (!task_with_stack(address, &registers, &known) || !known)
            return false;
        if (registers.exact) {
            *stack_pointer = registers.gpr[RSP];
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    }
    return false;
}

size_t tool_frames_to(uint64_t address, struct tool_stack_frame *frames, size_t max) {
    return stack_frames_to(address, frames, max);
}
