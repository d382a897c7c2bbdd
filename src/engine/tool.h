// What a tool is to the engine, and what the engine offers a tool. The only header of the engine
// that tools include; src/tools/none is the smallest tool.
//
// Words
//   hook        a function of the tool that the engine calls; NULL: the tool does not care
//   to look at code   hooks run while a block is translated, once for each time it is translated,
//               not each time it runs; they insert what is to happen whenever it runs
//   inserted    code that runs before the instruction that the tool was shown
//   thread's state   memory of the tool's own for each thread, zeroed at its start
//
// Where hooks run: on the thread concerned, in C, with the target's registers saved
// (tool_register, tool_pc …), the whole C library at hand, never in a signal handler. Hooks that
// look at code hold the cache lock: they must not wait for other threads and must not call the
// target's code. Memory hooks run while the ledger of mappings is locked.
#ifndef QUERN_ENGINE_TOOL_H
#define QUERN_ENGINE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- code, as a tool sees it while it is translated ----

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
    bool narrow; // 32-bit address
    int64_t displacement;
};

enum { TOOL_ACCESSES = 4 };

struct tool_insn {
    uint64_t pc;
    unsigned size;
    const uint8_t *bytes;
    enum tool_flow flow;
    bool repeats; // a string instruction with a rep prefix
    unsigned access_count;
    struct tool_access accesses[TOOL_ACCESSES]; // memory operands, the stack's included
};

struct tool_block; // the block being translated

typedef void tool_function(void *argument);

// Calls fn(argument) at run time, with the target's state saved: anything may be done, at the price
// of saving it (a few hundred instructions).
void tool_insert_call(struct tool_block *, tool_function *fn, void *argument);
// Adds to a 64-bit counter in the thread's state, a few instructions.
void tool_insert_add(struct tool_block *, size_t offset, int32_t amount);

// ---- the target's state, in inserted calls and in hooks about events ----

// Numbered as instructions encode them: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
uint64_t tool_register(unsigned number);
void tool_set_register(unsigned number, uint64_t value);
uint64_t tool_pc(void);
uint64_t tool_access_address(const struct tool_access *);
int tool_thread_id(void);
void *tool_thread_state(void);
// The call stack, innermost pc first; returns how many.
size_t tool_stack(uint64_t *pcs, size_t max);
// Target memory that may not be there: 0 or -EFAULT.
long tool_read(void *to, uint64_t from, size_t size);
long tool_write(uint64_t to, const void *from, size_t size);

// ---- functions by symbol ----

enum tool_function_kind {
    TOOL_REPLACE, // hook runs instead; it sets the result (rax); the engine returns to the caller
    TOOL_WATCH,   // hook runs first, then the function itself
};

struct tool_symbol {
    const char *module; // glob on the file's name without directory; "*": any
    const char *name;   // of the symbol, exactly
    enum tool_function_kind kind;
    void (*hook)(void);
};

// ---- the tool ----

struct tool {
    const char *name;
    size_t thread_size;                // of the thread's state
    const struct tool_symbol *symbols; // ended by a NULL name

    void (*start)(void); // before the first instruction; options: tool_option
    void (*end)(void);   // the process is about to end, whatever the reason

    // While code is translated.
    void (*block)(struct tool_block *, uint64_t pc);
    void (*instruction)(struct tool_block *, const struct tool_insn *);

    // Events.
    void (*thread_started)(void);
    void (*thread_ended)(void);
    void (*before_system_call)(long number, const uint64_t arguments[6]);
    void (*after_system_call)(long number, const uint64_t arguments[6], long result);
    void (*mapped)(uint64_t start, uint64_t end, int prot);
    void (*unmapped)(uint64_t start, uint64_t end);
    void (*protected)(uint64_t start, uint64_t end, int prot);
    void (*signal_delivered)(int number); // the handler's frame has been made
    void (*signal_returned)(void);
    // A client request (valgrind.h's numbering); true if *result is the answer.
    bool (*request)(const uint64_t words[6], uint64_t *result);
};

// An option's value, or NULL.
const char *tool_option(const char *name);
// A line for the user, after ==PID==.
__attribute__((format(printf, 1, 2))) void tool_say(const char *format, ...);

#endif
