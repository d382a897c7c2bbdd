// Which code belongs to which function, by the symbol tables of the files: enough to see where a
// function begins. The supervisor finds names.
//
// All functions may be called on any thread, none from a fast call.
#ifndef QUERN_TOOLS_CALLGRIND_FUNCTIONS_H
#define QUERN_TOOLS_CALLGRIND_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

// What options say of a function, by patterns.
struct function_marks {
    uint8_t events;          // FUNCTION_* (events.h)
    uint8_t callers, levels; // that make contexts, plus 1; 0: the default
};

struct code_place {
    uint64_t function; // its first pc; 0: no symbol covers the place
    uint64_t end;      // of the function
    uint32_t object;   // a number for the file that is mapped there; 0: none
    bool plt;          // a table of jumps into other modules
    struct function_marks marks;
    bool resolves; // may be the loader's function that binds and then jumps to the callee
};

// A symbol that matches the pattern has these marks. Before any module is added.
void functions_mark(const char *pattern, struct function_marks);
void functions_add(uint64_t start, uint64_t end, uint64_t offset, const char *path);
void functions_drop(uint64_t start, uint64_t end);
struct code_place functions_at(uint64_t pc);

#endif
