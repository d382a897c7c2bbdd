#include "tools/memcheck/memcheck.h"

#include <string.h>

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

const struct tool tool_memcheck = {
    .name = "memcheck",
    .thread_size = sizeof(struct memcheck_thread),
    .shadows = true,
    .start = start,
    .thread_started = thread_started,
};
