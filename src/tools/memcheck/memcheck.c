#include "tools/memcheck/memcheck.h"

#include <string.h>
#include <Zydis/Zydis.h>

#include "tools/memcheck/shadow.h"
#include "tools/tools.h"

enum { RSP = 4, RED_ZONE = 128 };

static void start(void) {
    const char *values = tool_option("undef-value-errors");
    shadow_undefined_values = !values || strcmp(values, "no") != 0;
}

// A thread's stack below its stack pointer is free to be used and undefined.
static void thread_started(void) {
    uint64_t first, last;
    if (tool_own_stack(&first, &last))
        shadow_make_undefined(first, tool_register(RSP) - RED_ZONE - first);
}

static struct tool_units units(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o) {
    return (struct tool_units){0};
}

static void *prepare(uint64_t pc, const uint8_t *bytes, const ZydisDecodedInstruction *z,
                     const ZydisDecodedOperand *o) {
    return NULL;
}

const struct tool tool_memcheck = {
    .name = "memcheck",
    .thread_size = sizeof(struct memcheck_thread),
    .shadows = true,
    .start = start,
    .units = units,
    .prepare = prepare,
    .stack_moved = memcheck_stack_moved,
    .thread_started = thread_started,
};
