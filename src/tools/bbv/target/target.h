// The target half of exp-bbv.
//
// Words
//   block      a piece of code as Valgrind's translator divides it: from where control arrives to
//   the
//              first instruction that ends a block, at most 60 instructions. Its start determines
//              it, so it is found by its address. Blocks may overlap.
//   number     what the output calls a block. It gets one when it first runs.
//   step       Valgrind runs a repeated string instruction step by step. Each step but the first is
//              a block of its own, which consists of that instruction.
//
// How it counts: inserted code adds 1 to the position for each instruction, and calls
// bbv_count_arrival where a block may begin. Only then are the instructions since the last call
// added to the block that they belong to. The engine divides code in its own way, so a call may
// come in the middle of a block, or only in the next one.
#ifndef QUERN_TOOLS_BBV_TARGET_TARGET_H
#define QUERN_TOOLS_BBV_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/bbv/bbv.h"
#include "tools/tools.h"

enum { POSITION_WORD = 0 }; // of the thread's words

enum { BLOCK_LONGEST = 60, BLOCKS = 1 << 21 };

struct block {
    uint64_t pc, end;
    uint32_t number; // 0: it has not run yet
    uint32_t length; // instructions
};
extern struct block *bbv_blocks; // BLOCKS of them; the first one stands for those without room

// What a thread of this number has counted. It remains when the thread ends, as in Valgrind: the
// next thread of the number goes on with it.
struct counts {
    struct bbv_totals *totals;
    uint64_t in_interval; // instructions
    uint64_t *by_block;   // instructions of this interval, by index
    uint32_t *touched;    // indexes of the blocks that are not 0
    uint32_t touched_count;
    uint32_t thread;
};

// A thread's state.
struct thread {
    uint64_t *position; // instructions run since they were last counted; a word of the thread
    struct counts *counts;
    uint32_t block;      // the one that runs; 0: none
    uint32_t done;       // instructions of it that have been counted
    uint64_t repeating;  // address of the string instruction that ran last; 0: another one did
    uint64_t rep_before; // rcx before it
    bool is_cut;         // Valgrind ends the block here, though its code goes on
};

extern uint64_t bbv_interval_size;
extern bool bbv_wants_vectors;

// ---- count.c: plain ----

// A block may begin here. The quick function does it all, or returns false and does nothing.
tool_quick_function bbv_count_quickly;
tool_fast_function bbv_count_arrival;
// Counts what has run since the last call.
void bbv_count_position(struct thread *thread);
// A string instruction is about to run: the first step.
void bbv_count_repeated(struct thread *thread, uint64_t pc);

// ---- blocks.c ----

void bbv_blocks_start(void);
// The index of the block that starts at the address, which is made or looked at anew.
uint32_t bbv_blocks_look(uint64_t pc);
// The same, but code that is known is taken to be unchanged.
uint32_t bbv_blocks_find(uint64_t pc);
// Address of an instruction in it, by number; 0: it cannot be read.
uint64_t bbv_blocks_address(uint32_t index, uint32_t instruction);
// Gives it a number, if it has none.
void bbv_blocks_number(uint32_t index);

enum instruction_kind {
    KIND_PLAIN,
    KIND_END,    // the last one of a block
    KIND_FLDCW,  // the last one if the value is unusual
    KIND_REP,    // movs, stos: the last one, repeated a known number of times
    KIND_SEARCH, // cmps, scas: the last one, may stop early
    KIND_LODS,   // counts as repeated, but Valgrind does not repeat it
};
enum instruction_kind bbv_blocks_kind(const struct tool_insn *insn);

// ---- records.c ----

extern struct bbv_totals_file *bbv_totals;

void bbv_records_start(void);
void bbv_records_block(uint32_t number, uint64_t pc);
// Writes the interval and starts the next one.
void bbv_records_interval(struct counts *counts);
// For a fork: nobody writes meanwhile.
void bbv_records_lock(void);
void bbv_records_unlock(void);
// In the child: new files, which begin with the blocks so far.
void bbv_records_fork(void);

#endif
