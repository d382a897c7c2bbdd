// Frames of interpreters among the addresses of a stack.
//
// A stack is an array of addresses. The frames of Python that its thread was running follow behind
// them, innermost first, as *marks*: numbers in a range that no address has. A mark stands for a
// function and a line in it. Its lowest bit says that the interpreter was entered with this frame:
// one call of _PyEval_EvalFrameDefault has run it and the marks before it, back to the last entry.
// interpreted_put puts the marks in the place of these calls. There they are odd, like a return
// address behind a call that begins at the even number before.
//
// Code is described by the target: nothing is trusted. Supervisor only.
#ifndef QUERN_TOOLS_INTERPRETED_H
#define QUERN_TOOLS_INTERPRETED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "wire/wire_python.h"

#define INTERPRETED_START 0x4000000000000000u
#define INTERPRETED_END   0x4100000000000000u

struct interpreted_code {
    char *name, *file; // file with its path, as the interpreter knows it
    int32_t first_line;
    uint8_t *table; // of lines, as in co_linetable
    size_t table_size;
};

// Zero-initialised is empty.
struct interpreted {
    struct map_integers numbers; // of code, as the agent numbers it
    struct interpreted_code *codes;
    size_t code_count;
    struct map_integers place_map; // by code and line; the entry is a place in `places`
    struct interpreted_place {
        uint32_t code;
        int32_t line;
    } * places;
    size_t place_count;
};

void interpreted_free(struct interpreted *interpreted);
// Takes a description; the first one of a number counts.
void interpreted_add(struct interpreted *interpreted, const struct python_code *code, size_t size);
// The mark of a frame; 0: its code is not known.
uint64_t interpreted_mark(struct interpreted *interpreted, const struct python_frame *frame);
static inline bool interpreted_is_mark(uint64_t address) {
    return address >= INTERPRETED_START && address < INTERPRETED_END;
}
// The code of a mark, which stays, and the line in it; NULL: it is none.
const struct interpreted_code *interpreted_find(const struct interpreted *interpreted,
                                                uint64_t mark, int32_t *line);

// Why frames in this enum python_state cannot be shown; NULL: they can.
const char *interpreted_problem(uint32_t state);
// Functions by which a call of the interpreter is known.
bool interpreted_is_interpreter(const char *function);
// Puts the marks at the end of a stack in the place of the calls that ran them; the number of
// addresses written to `to`, at most `count`. `is_call` tells these calls. Calls and frames agree
// at the outer end, unless that is missing (`is_cut`): the innermost call may just have begun. If
// they do not agree, the marks are left out.
size_t interpreted_put(const uint64_t *stack, size_t count, bool is_cut,
                       bool (*is_call)(void *context, uint64_t address), void *context,
                       uint64_t *to);

// The line of the instruction at an offset, by a table of lines of Python 3.11 and later.
int32_t interpreted_line(const uint8_t *table, size_t size, int32_t first_line, int32_t offset);

#endif
