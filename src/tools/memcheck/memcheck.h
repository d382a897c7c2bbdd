// The memcheck tool as a whole; see docs/memcheck.md.
#ifndef QUERN_MEMCHECK_MEMCHECK_H
#define QUERN_MEMCHECK_MEMCHECK_H

#include "tools/memcheck/registers.h"

// The state of a thread: tool_thread_state.
struct memcheck_thread {
    struct shadow_registers registers; // must come first
};

static inline struct memcheck_thread *memcheck_thread(void) {
    return tool_thread_state();
}

#endif
