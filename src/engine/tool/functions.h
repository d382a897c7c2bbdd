// Functions of the target that a tool replaces, watches or locates by their symbols.
//
// The engine looks for them in each file whose code is mapped. A hook runs on the thread that calls
// the function, before its first instruction; arguments are in the target's registers
// (tool/target.h).
#ifndef QUERN_ENGINE_TOOL_FUNCTIONS_H
#define QUERN_ENGINE_TOOL_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum tool_function_kind {
    TOOL_REPLACE, // the hook runs instead; it sets the result (rax); the engine returns to the
                  // caller
    TOOL_WATCH,   // the hook runs first, then the function itself
    TOOL_LOCATE,  // only writes its address to *located
};

// Stands for the program itself, if it defines malloc, calloc, realloc and free.
#define TOOL_PROGRAM "<program>"
// Stands for a module that defines these functions and whose allocator has no others, as far as its
// symbols tell: the program with its full symbols, or a module with an allocator of a known family
// (base/allocator_family.h).
#define TOOL_ALLOCATOR "<allocator>"
// Stands for the program itself, whatever it defines.
#define TOOL_ANY_PROGRAM "<any program>"

struct tool_symbol {
    const char *module; // globs on the file's name without directory, divided by |
    const char *name;   // of the symbol, exactly; indirect functions (STT_GNU_IFUNC) too. Local
                        // symbols are replaced in statically linked programs only
    enum tool_function_kind kind;
    void (*hook)(void);
    uint64_t *located;
};

// Whether the program brings an allocator along that is not replaced. General registers only.
bool tool_allocator_is_left_alone(void);

// In a TOOL_REPLACE hook: the function itself is to run after all.
void tool_run_itself(void);
// In a TOOL_REPLACE hook: instead of a result, the target gets the signal for what the last
// tool_try failed with, at the function's first instruction.
void tool_raise(void);

// What may be tried before a TOOL_REPLACE hook, at a lower price. It gets the first three arguments
// and the thread's state; tool_register knows rsp only. It leaves vector registers alone and
// reports nothing. Not done: it has changed nothing that the hook would not, which runs then. A
// fault ends it as not done.
struct tool_quick_result {
    uint64_t is_done;
    uint64_t result; // rax, defined
};
typedef struct tool_quick_result tool_quick_hook(uint64_t a, uint64_t b, uint64_t c,
                                                 void *thread_state);

// A function of a library that is called before the process ends, unless the option is no.
struct tool_exit_function {
    const char *name, *option;
    bool writes; // what is in buffers: called only after exit, not after _exit alone
};
enum { TOOL_EXIT_FUNCTIONS = 4 }; // at most

#endif
