// Functions of the target that it wants to have called (VALGRIND_NON_SIMD_CALL).
//
// A call is a dispatcher inside the dispatcher: it ends when the function returns to a place where
// no code is, which the target cannot jump to by itself. All registers but the one for the result
// are as before then; the request is an instruction that changes no other. A function that leaves
// by longjmp stays inside for good, which does no harm but to the engine's stack.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/run/run.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

enum { PAGE = 4096 };

struct saved {
    uint64_t gpr[GPR_COUNT], pc, flags;
    uint8_t *xstate, *tool;
};

static uint64_t return_place; // 0: not yet, or no room

static void make_return_place(void) {
    return_place = memory_map_anonymous(PAGE, PAGE);
}

static bool save(struct saved *saved) {
    *saved = (struct saved){.pc = self->pc,
                            .flags = self->flags,
                            .xstate = malloc(xstate_size),
                            .tool = malloc(tool->register_size + 1)};
    if (!saved->xstate || !saved->tool)
        return false;
    memcpy(saved->gpr, self->gpr, sizeof saved->gpr);
    memcpy(saved->xstate, self->xstate, xstate_size);
    memcpy(saved->tool, self->tool, tool->register_size);
    return true;
}

static void restore(const struct saved *saved) {
    memcpy(self->gpr, saved->gpr, sizeof saved->gpr);
    memcpy(self->xstate, saved->xstate, xstate_size);
    memcpy(self->tool, saved->tool, tool->register_size);
    self->pc = saved->pc;
    self->flags = saved->flags;
}

static void set_register(unsigned number, uint64_t value) {
    self->gpr[number] = value;
    TOOL_HOOK(register_set, number);
}

uint64_t call_target(uint64_t function, const uint64_t *arguments, unsigned count) {
    static const uint8_t registers[] = {RSI, RDX, RCX};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct saved saved = {0};
    uint64_t result = 0, sp = ((self->gpr[RSP] - RED_ZONE) & ~15ul) - sizeof return_place;
    pthread_once(&once, make_return_place);
    if (return_place && save(&saved) && target_write(sp, &return_place, sizeof return_place) == 0) {
        TOOL_HOOK(stored, sp, sizeof return_place);
        set_register(RSP, sp);
        set_register(RAX, 0); // no argument is in a vector register
        set_register(RDI, self->number);
        for (unsigned i = 0; i < count; i++)
            set_register(registers[i], arguments[i]);
        self->pc = function;
        run_until(return_place);
        if (self->gpr[RSP] == sp + sizeof return_place) {
            result = self->gpr[RAX];
            restore(&saved);
        } // else it is an outer call that has ended
    }
    free(saved.xstate);
    free(saved.tool);
    return result;
}
