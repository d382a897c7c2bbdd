// The memcheck tool as a whole: what the parts of its target half call in one another. See
// docs/memcheck.md for how it works. Target context, on any thread.
#ifndef QUERN_MEMCHECK_MEMCHECK_H
#define QUERN_MEMCHECK_MEMCHECK_H

#include "engine/tool.h"
#include "tools/memcheck/target/shadow/registers.h"

// The state of a thread: tool_thread_state.
struct memcheck_thread {
    struct shadow_registers registers;         // must come first
    struct interrupted *interrupted;           // by signals whose handlers have not returned
    struct origin_known_frames *origin_frames; // origins_frames.c
    uint64_t stack_reach; // from the stack pointer up to here, all is the same stack (frames.c)
    uint64_t old_rsp;     // before an instruction that moves the stack pointer anywhere
    uint64_t store_back;  // where to go on after a first store (insert/store_gate.c)
    uint64_t no_bits[4];  // zero, always: the bits of what is defined (insert/carry.c)
    uint64_t moved_bits;  // on their way from memory to memory (insert/carry.c)
};

// signals.c
void memcheck_signal_delivered(int number, uint64_t frame, uint64_t frame_end,
                               uint64_t alternate_stack);
void memcheck_signal_returned(uint64_t frame);
void memcheck_forget_signals(void); // the thread ends

// How the stack pointer has moved.
enum stack_move {
    STACK_LOADED = 1,    // from a register or memory: it may have gone to another stack
    STACK_KEEPS_ZONE = 2 // the function goes on, and may read the 128 bytes below the pointer
};
// frames.c: the stack pointer has moved up, or was loaded. Leaves vector registers alone.
void memcheck_stack_moved(uint64_t from, uint64_t to, unsigned how);
extern uint64_t memcheck_max_frame; // --max-stackframe: more is a change of stacks

static inline struct memcheck_thread *memcheck_thread(void) {
    return tool_thread_state();
}

#endif
