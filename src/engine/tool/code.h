// Code as a tool sees it while a block is translated, and the calls and counts that it inserts.
//
// Whatever is inserted runs before the instruction that the tool was shown, each time. A tool that
// needs more than calls and counts writes its own code: tool/insert.h.
#ifndef QUERN_ENGINE_TOOL_CODE_H
#define QUERN_ENGINE_TOOL_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- instructions ----

enum tool_flow {
    TOOL_NEXT,   // goes on to the next instruction
    TOOL_BRANCH, // may go elsewhere, by a condition
    TOOL_JUMP,
    TOOL_CALL,
    TOOL_RETURN,
    TOOL_SYSTEM, // a system call
};

struct tool_access {
    uint16_t size; // bytes; of a repeated string instruction: of one step
    bool reads, writes;
    // How its address is computed; see tool_access_address.
    int8_t base, index; // register numbers, -1: none
    uint8_t scale, segment;
    bool narrow;    // 32-bit address
    bool scattered; // several addresses (gathers)
    int64_t displacement;
};

enum { TOOL_ACCESSES = 4 };

struct tool_insn {
    uint64_t pc;
    unsigned size;
    const uint8_t *bytes;
    enum tool_flow flow;
    uint64_t target; // of a direct branch; 0: none, or not known before it runs
    bool repeats;    // a string instruction with a rep prefix
    unsigned access_count;
    struct tool_access accesses[TOOL_ACCESSES]; // memory operands, the stack's included
};

// Decodes an instruction elsewhere into `bytes` and the structure; false: there is none.
enum { TOOL_INSN_BYTES = 15 };
bool tool_look(uint64_t pc, struct tool_insn *, uint8_t bytes[TOOL_INSN_BYTES]);

struct tool_block; // the block being translated

// One of several translations of the same code (tool/insert.h).
struct tool_version {
    uint64_t set; // what its bits mean is the tool's
    bool forced;  // made for a check that has failed
};

// ---- calls ----

typedef void tool_function(void *argument);

// Memory for an argument, which lasts as long as the block.
void *tool_allocate(size_t size);
// Calls fn(argument) with the target's state saved: it may do anything, at the price of saving the
// state (a few hundred instructions).
void tool_insert_call(struct tool_block *, tool_function *fn, void *argument);

// A fast call: a tenth of the price. The function uses general registers only (no vector registers,
// no C library) and finds none of the target's registers but rsp.
typedef void tool_fast_function(uint32_t argument, uint64_t rsp, void *thread_state);
enum tool_condition {
    TOOL_ALWAYS,
    TOOL_IF_TAKEN, // before a TOOL_BRANCH; before loop and jrcxz nothing is inserted
    TOOL_IF_NOT_TAKEN,
    TOOL_IF_WORD, // if the low half of word 1 is not 0
};
void tool_insert_fast_call(struct tool_block *, enum tool_condition, tool_fast_function *,
                           uint32_t argument);
// The same before an indirect jump or call, with the address that it leads to.
typedef void tool_address_function(uint32_t argument, uint64_t rsp, void *thread_state,
                                   uint64_t address);
void tool_insert_target_call(struct tool_block *, tool_address_function *, uint32_t argument);

// A quick call: a third of the price of a fast call, for what is mostly little work. `quick` runs
// first; if it returns false, having done nothing, the fast function is called. A quick function
// saves the registers that it uses. So that there are few, it reaches words, state and rsp by
// tool/quick.h.
#define TOOL_QUICK __attribute__((no_caller_saved_registers))
typedef TOOL_QUICK bool tool_quick_function(uint32_t argument);
void tool_insert_quick_call(struct tool_block *, enum tool_condition, tool_quick_function *quick,
                            tool_fast_function *, uint32_t argument);

// ---- counts ----
//
// Each thread has words, which inserted code reaches with one operand, and counters of 64 bits,
// whose place tool_set_counters chooses (at thread_started, or at any other time).

enum { TOOL_WORDS = 8 };
uint64_t *tool_thread_words(void);
void tool_set_counters(void *counters);
// The same by one instruction, on processors and kernels that permit it.
bool tool_can_set_counters_quickly(void);
static inline void tool_set_counters_quickly(void *counters) {
    __asm__ volatile("wrgsbase %0" : : "r"(counters));
}

// Adds to a 64-bit counter in the thread's state.
void tool_insert_add(struct tool_block *, size_t offset, int32_t amount);
// Sets half a word: 0, the low one, or 1.
void tool_insert_set(struct tool_block *, unsigned word, unsigned half, uint32_t value);

// A count that has been inserted and is filled in later, before block_end returns.
struct tool_count {
    uint8_t *index_sites[2], *amount_sites[2];
    unsigned index_count, amount_count;
    uint8_t *start, *end; // of code that does nothing if the amount is 0
};
// Adds 1 to a counter and an amount to a word.
void tool_insert_count(struct tool_block *, struct tool_count *, unsigned word);
// Adds an amount to a word; tool_fill_count with any index.
void tool_insert_word_count(struct tool_block *, struct tool_count *, unsigned word);
// Adds an amount to a word and to the counter at a distance from the one that the other word names.
void tool_insert_count_at(struct tool_block *, struct tool_count *, unsigned word,
                          unsigned index_word, uint32_t distance);
enum { TOOL_AMOUNT_MOST = 127 };
void tool_fill_count(const struct tool_count *, uint32_t index, uint8_t amount);
// Starts (true) or ends (false) a group of instructions that no signal or request from another
// thread interrupts, from the next instruction on: one count may stand for all of them.
void tool_keep_together(struct tool_block *, bool);

// ---- the lock ----

// The lock that hooks about code hold, for other hooks that use the same data. Wait for nothing
// while you hold it.
void tool_lock_code(void);
void tool_unlock_code(void);

#endif
