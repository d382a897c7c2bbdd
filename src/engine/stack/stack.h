// The target's call stacks, as seen from the engine.
//
// Nothing is prepared before the first walk: it reads the modules that are mapped then; afterwards
// the reports of modules that come and go keep the picture true (report/modules.c).
#ifndef QUERN_ENGINE_STACK_H
#define QUERN_ENGINE_STACK_H

#include <stddef.h>
#include <stdint.h>

struct mapped_code;

// Walks the calling thread's stack from its saved registers. Writes at most max pcs, innermost
// first, and returns how many. Not while the space lock is held for writing.
size_t stack_of_task(uint64_t *pcs, size_t max);
extern unsigned stack_merged_frames; // --merge-recursive-frames
// The same with general registers only, where all that is needed has been looked up before; else 0.
size_t stack_of_task_quickly(uint64_t *pcs, size_t max);
// As tool_stack_recall and tool_stack_note (tool.h).
uint32_t stack_recall(void);
void stack_note(const uint64_t *pcs, size_t count, uint32_t value);

// The same step by step, without a memory of earlier walks: for each frame its pc and the stack
// pointer of its caller, where the frame ends. From the given registers, which may be those of another
// thread that goes on meanwhile, or (NULL) the calling thread's.
struct task_registers;
size_t stack_frames(const struct task_registers *, uint64_t *pcs, uint64_t *ends, size_t max);

// As tool_frames_to (tool.h).
struct tool_stack_frame;
size_t stack_frames_to(uint64_t address, struct tool_stack_frame *frames, size_t max);

void stack_module_mapped(const struct mapped_code *);
void stack_module_gone(uint64_t start, uint64_t end);
void stack_thread_end(void);
void stack_forked(void);

#endif
