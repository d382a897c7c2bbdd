// What callgrind collects besides instructions and simulation: time in system calls
// (--collect-systime) and locked instructions (--collect-bus). Also dumps at regular numbers of
// blocks (--dump-every-bb).
#ifndef QUERN_TOOLS_CALLGRIND_COLLECT_H
#define QUERN_TOOLS_CALLGRIND_COLLECT_H

#include "engine/tool.h"

void collect_start(void); // reads options
// While code is translated: a block begins; an instruction of the function's.
void collect_block(struct tool_block *);
void collect_instruction(struct tool_block *, const struct tool_insn *, uint32_t function);
// Hooks; needed only if collect_system_calls returns true.
bool collect_system_calls(void);
void collect_before_call(long number, const uint64_t arguments[6]);
void collect_after_call(long number, const uint64_t arguments[6], long result);

#endif
