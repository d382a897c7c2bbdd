// Stacks that the target makes itself: announced by STACK_REGISTER and its kin or by makecontext,
// or noticed when the stack pointer moves far.
//
// A move of the stack pointer within a stack makes memory undefined or inaccessible. A move from
// one stack to another changes nothing; frames.c explains how it recognises stacks that nobody has
// announced. Client requests and hooks on any thread call in here.
#ifndef QUERN_MEMCHECK_FRAMES_H
#define QUERN_MEMCHECK_FRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/tool.h"

// Start and end in any order. The number by which the stack is known.
uint64_t frames_register(uint64_t start, uint64_t end);
void frames_deregister(uint64_t number);
void frames_change(uint64_t number, uint64_t start, uint64_t end);
void frames_forked(void); // in the child

// Threads' own stacks. Whether an address lies below the stack pointer of another thread, on the
// stack it was started on: that thread is stopped for a moment, so the question is for undefined
// memory only, and after it was asked a thousand times the answer is no. General registers only.
void frames_thread_started(void);
void frames_thread_ended(void);
bool frames_is_below_other(uint64_t address);

extern const struct tool_symbol frame_symbols[]; // what is watched

#endif
