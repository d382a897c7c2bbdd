// Stacks that the target makes itself: STACK_REGISTER and its kin, and makecontext.
//
// A move of the stack pointer from one stack to another releases nothing. frames.c tells how stacks
// that nobody has announced are told apart. Requests and hooks of any thread call in here.
#ifndef QUERN_MEMCHECK_FRAMES_H
#define QUERN_MEMCHECK_FRAMES_H

#include <stdint.h>
#include "engine/tool.h"

// Start and end in any order. The number by which the stack is known.
uint64_t frames_register(uint64_t start, uint64_t end);
void frames_deregister(uint64_t number);
void frames_change(uint64_t number, uint64_t start, uint64_t end);
void frames_forked(void); // in the child

extern const struct tool_symbol frame_symbols[]; // what is watched

#endif
