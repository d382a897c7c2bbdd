// The contract between the engine and a tool: the hooks that a tool has, and, in the headers below,
// what the engine offers. It is the only header of the engine that a tool includes (tests/layers).
// docs/tools.md shows how to write a tool.
//
// Words
//   target      the program under examination
//   block       a piece of target code that is translated at once, up to the next jump
//   hook        a function of the tool that the engine calls; NULL: the tool does not need it
//   hook about code   runs while a block is translated, once for each translation, not each time
//               the block runs; it inserts code that does
//   hook about an event   runs when the event happens
//   thread's state   memory of the tool's own for each thread, zeroed at its start
//   plain       of a function: it leaves vector registers alone (built with -mgeneral-regs-only,
//               calls no C library). Such functions are called at a fraction of the price
//
// Where hooks run: on the thread concerned, never in a signal handler, with the target's registers
// saved (tool/target.h) and the C library at hand unless the hook is marked plain. Hooks about code
// hold the cache lock: they must not wait for other threads and must not call the target's code.
// Hooks about memory run while the ledger of mappings is locked.
#ifndef QUERN_ENGINE_TOOL_H
#define QUERN_ENGINE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/tool/code.h"      // code as a tool sees it; calls and counts to insert
#include "engine/tool/functions.h" // functions of the target, by symbol
#include "engine/tool/insert.h"    // machine code of the tool's own
#include "engine/tool/messages.h"  // options, the log, the supervisor
#include "engine/tool/quick.h"     // what quick functions reach by themselves
#include "engine/tool/shadow.h"    // a byte of the tool's for each byte of the target
#include "engine/tool/target.h"    // registers, memory, threads, stacks

struct insn;       // a decoded instruction: engine/insn.h
struct asm_memory; // how generated code addresses an operand: engine/assembler/assembler.h
struct ZydisDecodedOperand_;

struct tool_stack_words {
    const uint64_t *pcs;
    size_t count;
};

struct tool_descriptor_fault {
    unsigned kind; // FINDING_CLOSED_AGAIN, FINDING_NOT_OPEN or FINDING_LEFT_OPEN
    int fd;
    bool was_open, is_inherited;
    const char *description; // of what it leads or led to; "": not known
    struct tool_stack_words stack, opened, closed;
};

struct tool {
    const char *name;     // --tool=
    size_t thread_size;   // of the thread's state
    size_t register_size; // of its first part, which is about registers: saved and restored with
                          // them when the target's code is called from within a request
    uint64_t shadow_distance; // from memory to its shadow; 0: the tool has no shadow memory
    uint64_t memory_start, memory_end; // addresses that the tool keeps for itself; 0: none
    bool counts_by_address;            // lay the target out as Valgrind does (space/place.h)
    bool plain_hooks;                  // hooks of `symbols` that replace functions are plain
    const struct tool_symbol *symbols; // ended by a NULL name
    tool_quick_hook *(*quick_hook)(void (*hook)(void)); // to try before that hook, or NULL
    // Instead of functions of allocators that programs bring along, in modules with these names
    // (tool_symbol.module; NULL: nowhere). Gets a struct allocator_function; plain if hooks are.
    tool_function *allocator_function;
    const char *(*allocator_modules)(void);
    const struct tool_exit_function *exit_functions; // in their order, ended by a NULL name

    // ---- the run ----
    void (*start)(void);            // before the first instruction; read options here
    void (*end)(void);              // the process is about to end, for whatever reason; once
    int (*exit_status)(int status); // after `end`, not for signals: the status it ends with

    // ---- code ----
    // The block begins at pc; what is inserted runs once each time it is entered.
    void (*block)(struct tool_block *, uint64_t pc);
    // Each instruction of it in turn; what is inserted runs before it, once.
    void (*instruction)(struct tool_block *, const struct tool_insn *);
    // The block is complete. Counts are filled in here, and code behind the block is written.
    void (*block_end)(struct tool_block *);
    // All blocks and gates are gone, with all that was allocated for them.
    void (*flushed)(void);

    // ---- code, for tools that write their own (tool/insert.h) ----
    // Before everything else in the block. What is written here may run again after a signal.
    void (*head)(struct tool_block *);
    // Just before and just after the instruction; `after` not if the block has ended with it.
    void (*before)(struct tool_block *, struct insn *);
    void (*after)(struct tool_block *, struct insn *);
    // Within the instruction: its memory operand is addressed through scratch registers, which are
    // spilled, and not as written. The access comes next.
    void (*operand)(struct tool_block *, struct insn *, const struct ZydisDecodedOperand_ *,
                    const struct asm_memory *, uint16_t spilled);
    // Within a return at pc: rsp has been raised by size bytes, rcx is spilled.
    void (*returned)(struct tool_block *, uint64_t pc, unsigned size);
    // In place of a whole block: a function has been replaced, and its return comes next.
    void (*replaced)(struct tool_block *);
    // The tool has versions of blocks: the set of the calling thread. is_single: the block holds
    // one instruction and is run once. Plain.
    uint64_t (*thread_set)(bool is_single);

    // ---- threads and processes ----
    void (*thread_started)(void);
    void (*thread_ended)(void);
    void (*forking)(void);   // a fork is about to be made; other threads go on
    void (*fork_made)(void); // in the parent, also when it failed
    void (*forked)(void);    // in the child
    // The same for a child that shares memory. It runs on the parent's thread's state, which is put
    // back as it was after `vforking`; other threads go on.
    void (*vforking)(void);
    void (*vforked)(void);    // in the child
    void (*vfork_made)(void); // in the parent, when the child is gone, also when there was none

    // ---- memory ----
    void (*mapped)(uint64_t start, uint64_t end, int prot);
    void (*unmapped)(uint64_t start, uint64_t end);
    // Whole pages have gone to another place, with their shadow; `mapped` and `unmapped` follow.
    void (*moved)(uint64_t to, uint64_t from, uint64_t size);
    void (*protected)(uint64_t start, uint64_t end, int prot);
    // Code of a file has been mapped; `unmapped` ends it.
    void (*module)(uint64_t start, uint64_t end, uint64_t offset, const char *path);

    // ---- system calls, signals, requests ----
    void (*before_system_call)(long number, const uint64_t arguments[6]);
    void (*after_system_call)(long number, const uint64_t arguments[6], long result);
    // The handler's frame has been made. alternate_stack: where that begins, 0: not used.
    void (*signal_delivered)(int number, uint64_t frame, uint64_t frame_end,
                             uint64_t alternate_stack);
    void (*signal_returned)(uint64_t frame); // registers are those that were interrupted
    // The instruction at tool_pc has touched memory that is not there. The processor gives no
    // address (is_known = false) if none can exist there.
    void (*faulted)(const struct insn *, uint64_t address, bool is_known);
    // It has jumped to such memory; is_mapped: to memory that is not executable.
    void (*jumped_nowhere)(uint64_t address, bool is_mapped);
    // A descriptor that is not open was used or closed, or one was left open (--track-fds). NULL:
    // the engine reports it.
    void (*descriptor_fault)(const struct tool_descriptor_fault *);
    // A client request (valgrind.h's numbering); true if *result is the answer.
    bool (*request)(const uint64_t words[6], uint64_t *result);

    // A command that a user gives while the target stands still, by gdb's `monitor` or by
    // `quern ctl`: words with single spaces. Answers with tool_answer, or with lines of the log,
    // which go to that user meanwhile. False: it is none of the tool's.
    bool (*monitor)(char *command);
    const char *monitor_help; // a line for each command
    // For gdb (--vgdb-shadow-registers): the undefined bits of a register of a thread that stands
    // still, with this state of the tool's, and where they come from (0: not known).
    void (*register_shadow)(const void *state, enum tool_register_kind kind, unsigned index,
                            uint64_t undefined[2], uint32_t *origin);

    // ---- what the engine does in the target's stead ----
    void (*register_set)(unsigned number);           // it has set a general register. Plain
    void (*stored)(uint64_t address, uint64_t size); // it has written to memory
};

#endif
