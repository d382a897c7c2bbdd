// Code that callgrind and cachegrind both insert. A run of instructions is counted at its first
// instruction. With simulation, each access and each branch is simulated by itself.
//
// All functions are called while code is translated, with the engine's lock held.
#ifndef QUERN_TOOLS_CALLGRIND_RUNS_H
#define QUERN_TOOLS_CALLGRIND_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tool.h"
#include "wire/call_counts.h"

// An instruction that reads and writes one place counts as one access, of a kind in which the tools
// differ. They also differ in the sense of the branch by rcx in string instructions that compare.
extern bool runs_modify_is_read, runs_first_branch_goes_on;
extern bool runs_join_branches; // joined.h; the thread's instructions are all in WORD_TOTALS then
extern bool runs_have_callers;  // reads and writes of calls are counted

void run_block(void); // a block begins
bool run_is_open(void);
// Opens a run at pc, for a function. A skipped run counts at the site that called it.
void run_open(struct tool_block *, uint64_t pc, uint32_t function, bool skipped);
uint32_t run_function(void);
enum counts_kind run_kind(void); // of its events
void run_add(struct tool_block *, const struct tool_insn *);
bool run_ends(const struct tool_insn *);      // with this instruction
void run_close(void);                         // if one is open
void run_end_block(struct tool_block *);      // of code: in the hook block_end
bool run_is_locked(const struct tool_insn *); // it changes memory atomically
// Whether a branch goes by rcx (loop, jrcxz), where TOOL_IF_TAKEN does not help; and, in a call
// before it, whether it will be taken.
bool branch_uses_count(const struct tool_insn *);
bool branch_by_count_is_taken(uint8_t opcode);

#endif
