// The engine's side of tools: the tool in use, calls of its hooks, functions found by symbol.
//
// Only hooks.c knows the table of tools. The rest of the engine calls a hook with TOOL_HOOK or by a
// function below. They run where engine/tool.h says.
#ifndef QUERN_ENGINE_HOOKS_H
#define QUERN_ENGINE_HOOKS_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/task_offsets.h"
#include "engine/tool.h"

struct insn;
struct builder;

// The tool in use; set once at start-up.
extern const struct tool *tool;

#define TOOL_HOOK(name, ...)                                                                       \
    do {                                                                                           \
        if (tool->name)                                                                            \
            tool->name(__VA_ARGS__);                                                               \
    } while (0)

void hooks_init(void);         // finds the tool by its option, or ends with a message
void hooks_thread_start(void); // makes the thread's state
void hooks_thread_end(void);
void hooks_end(void); // once for each process

// Target memory has come, gone or moved. Empty ranges are fine.
void hooks_mapped(uint64_t start, uint64_t end, int prot);
void hooks_unmapped(uint64_t start, uint64_t end);
void hooks_moved(uint64_t to, uint64_t from, uint64_t size);

// Segments of accesses.
enum { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

// ---- functions ----

// A function that something is done about when a block begins at its first instruction.
struct hooked_function {
    uint64_t pc;
    uint64_t shown; // what the target's stack shows in its place
    enum tool_function_kind kind;
    tool_function *function;
    void *argument;
    struct hooked_function *next;
};

// Once, before any module is reported.
void functions_init(void);
// All but function_find take or need the cache lock.
void function_hook(uint64_t pc, uint64_t shown, enum tool_function_kind, tool_function *,
                   void *argument);
const struct hooked_function *function_find(uint64_t pc);
// What the target prints by a request, with the arguments at `list` (a va_list): the number of
// characters. A line without an end waits for the rest of it, or for print_end.
unsigned long print_request(uint64_t format, uint64_t list, bool with_stack);
void print_end(void);

// The tool's exit_functions as a stack of return addresses that calls them one after the other and
// then goes on with `after`; every one begins with the stack aligned as after a call. The number of
// addresses, even or 0.
enum { RETURNS_AT_EXIT = 2 * TOOL_EXIT_FUNCTIONS };
unsigned functions_at_exit(uint64_t *returns, tool_function *after, void *argument);
// A module's code has been mapped, or is gone. With the cache lock free.
void functions_of_module(uint64_t start, uint64_t end, uint64_t offset, const char *path);
void functions_gone(uint64_t start, uint64_t end);

// ---- functions that the target itself replaces or wraps (base/redirection.h) ----

struct redirected_function {
    uint64_t pc, to;
    bool wraps;
    struct redirected_function *next;
};

// No lock.
const struct redirected_function *redirection_find(uint64_t pc);
// With the cache lock.
struct module;
void redirections_of_module(struct module *, const char *path);

// Ends with a message if the program's sanitizer and the tool exclude each other.
void sanitizers_check(const struct module *program, const char *path);
void redirections_gone(uint64_t start, uint64_t end);

#endif
