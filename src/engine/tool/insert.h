// The inserter: how a tool writes machine code into the block that is being translated.
//
// For tools whose fast path is code of their own (memcheck, dhat, the cache simulation). Others do
// with the calls and counts of tool/code.h. All of this runs while a block is translated, in the
// hooks about code, with the cache lock held; what may be called when the block runs says so.
//
// Words
//   assembler   writes the next instruction (assembler/assembler.h, sequences.h)
//   field       a place in the thread's task; inserted code reaches it with one fs: operand
//   spilled     a register whose value is in its field while inserted code uses it as scratch:
//               asm_spill, asm_unspill. insert_state must say which ones are
//   exit        a jump out of the block to target code. The engine patches it later to lead
//               straight to the block that is there
//   gate        code that is written once, outside of blocks, and stays for good; blocks jump to it
//   behind the block   what the hook block_end writes: ways that are rarely taken, which would
//               stand in the way between two instructions
//
// Registers and flags of the target are in the processor wherever code is inserted. Inserted code
// puts back what it changes, flags included unless insert_flags_are_dead.
#ifndef QUERN_ENGINE_TOOL_INSERT_H
#define QUERN_ENGINE_TOOL_INSERT_H

#include "engine/assembler/sequences.h"
#include "engine/layout.h"
#include "engine/insn.h"
#include "engine/tool/code.h"

// ---- the block at hand ----

enum {
    INSERT_INSTRUCTIONS = 96, // of a block, at most
    INSERT_EXITS = 10,        // that a tool may write for one instruction, at most
};

struct assembler *insert_assembler(struct tool_block *);
uint64_t insert_block_pc(const struct tool_block *);
// Whether the program has made this code itself: it is not from a file that is mapped privately, as
// programs and libraries are.
bool insert_is_generated(const struct tool_block *);
// The instructions of the block, and those from the one at hand on. Operands may still have to be
// decoded (insn_operands).
struct insn *insert_all(const struct tool_block *, unsigned *count);
struct insn *insert_rest(const struct tool_block *, unsigned *count);
// Whether all flags are written before any is read, from the instruction at hand on.
bool insert_flags_are_dead(struct tool_block *);
// The same behind the instruction at hand, which may write them.
bool insert_flags_are_dead_behind(struct tool_block *);

// ---- what signals and faults find ----

// How the target's state is to be read when a signal or a fault comes.
enum insert_state {
    INSERT_CLEAN,  // an instruction begins here and the target's state is in place: a signal may be
                   // delivered, and the code before this point runs again afterwards
    INSERT_WITHIN, // within an instruction, or behind something that must not run twice: a signal
                   // waits; a fault is the target's own
    INSERT_CHECK,  // as CLEAN, and a fault is taken for a check that fails (insert_failed_by)
};
// Describes the code from here on; `spilled`: registers by number, as bits.
void insert_state(struct tool_block *, enum insert_state, uint16_t spilled);
// Behind the block: code from here on belongs to the instruction at pc.
void insert_for_pc(struct tool_block *, uint64_t pc);

// ---- fields ----

enum {
    INSERT_SCRATCH = TASK_JUMP_TARGET,     // free for what is inserted, while it runs
    INSERT_STACK_START = TASK_STACK_START, // of the stack that the thread was started on
    INSERT_STACK_END = TASK_STACK_END,
    INSERT_THREAD_STATE = TASK_TOOL_MEMORY, // the tool's, if it has at most INSERT_STATE_MOST bytes
    INSERT_STATE_MOST = 4096,
};
static inline unsigned insert_word(unsigned word) { // tool_thread_words
    return TASK_TOOL_WORDS + 8 * word;
}

// ---- addresses ----

// to = the address of an access; rdx is used as well if it has a segment.
void insert_access_address(struct assembler *, const struct tool_access *, unsigned to);

// ---- calls ----

// Calls fn(argument) with the target's general registers at hand (tool_register); tool_pc is the
// instruction at hand. fn leaves vector registers alone.
void insert_saved_call(struct tool_block *, tool_function *fn, void *argument);
// The gate of a fast call, for one whose argument other code puts into edi: asm_begin_gate_call,
// that code, asm_gate_call.
uint64_t insert_fast_gate(tool_fast_function *);

// ---- gates ----

// Around the writing of a gate. It lasts until the hook `flushed`.
struct assembler insert_gate_begin(void);
void insert_gate_end(const struct assembler *);

// ---- exits and versions ----
//
// A tool that sets `thread_set` has several versions of a block, one for each set of 64 bits that
// it meets; what the bits mean is the tool's. The version of the empty set is the usual one, and
// the fastest way goes there. The version of a larger set must do as well: when there are too many,
// the engine takes the set of all bits.
//
// A check that has failed leads to a *forced* version of the block that begins with the instruction
// checked: the tool treats its first instruction in the slow way, whatever the set is.

struct tool_version insert_version(const struct tool_block *); // of the block at hand
// From here on, exits lead to the version of this set. At first: the block's own set.
void insert_exits_to(struct tool_block *, uint64_t set);
// The jump, which has just been written with a long distance (asm_align_patch first), is an exit.
void insert_exit_by(struct tool_block *, struct asm_jump, uint64_t target);
// The same, to the forced version of this set, of the block that begins with the instruction at
// hand.
void insert_failed_by(struct tool_block *, struct asm_jump, uint64_t set);
// Ends the block with a jump to target.
void insert_exit(struct tool_block *, uint64_t target);
// Calls choose(argument, &set), as insert_saved_call does, when the block runs. If it returns true,
// the thread goes on at the head of the same block in the version of that set, which must contain
// the block's own; else it jumps to `back`. Behind the block only; no register is spilled.
typedef bool insert_chooser(void *argument, uint64_t *set);
void insert_switch(struct tool_block *, insert_chooser *choose, void *argument,
                   const uint8_t *back);

#endif
