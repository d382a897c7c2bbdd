// Frames of interpreters among the addresses of a stack.
//
// A stack is an array of addresses. The frames of Python that its thread was running follow behind
// them, innermost first, as *marks*: numbers in a range that no address has. A mark stands for a
// function and a line in it. Its lowest bit says that the interpreter was entered with this frame:
// one call of _PyEval_EvalFrameDefault has run it and the marks before it, back to the last entry.
//
// Code is described by the agent, in memory that the target can write: nothing is trusted.
// Supervisor only.
#ifndef QUERN_FLAME_INTERPRETED_H
#define QUERN_FLAME_INTERPRETED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "wire/wire_samples.h"

#define INTERPRETED_START 0x4000000000000000u
#define INTERPRETED_END   0x4100000000000000u

struct interpreted_code {
    char *name, *file; // file without folders
    int32_t first_line;
    uint8_t *table; // of lines, as in co_linetable
    size_t table_size;
};

// Zero-initialised is empty.
struct interpreted {
    struct map_integers numbers; // of code, as the agent numbers it
    struct interpreted_code *codes;
    size_t code_count;
    struct map_integers places; // a code and a line, by number of the mark
    char **names;               // of places
    size_t name_count;
};

void interpreted_free(struct interpreted *interpreted);
// Takes a description; the first one of a number counts.
void interpreted_add(struct interpreted *interpreted, const struct samples_code *code, size_t size);
// The mark of a frame; 0: its code is not known.
uint64_t interpreted_mark(struct interpreted *interpreted, const struct samples_frame *frame);
static inline bool interpreted_is_mark(uint64_t address) {
    return address >= INTERPRETED_START && address < INTERPRETED_END;
}
static inline bool interpreted_is_entry(uint64_t mark) {
    return mark & 1;
}
// FUNCTION (FILE:LINE) of a mark; it stays.
const char *interpreted_name(const struct interpreted *interpreted, uint64_t mark);

// The line of the instruction at an offset, by a table of lines of Python 3.11 and later.
int32_t interpreted_line(const uint8_t *table, size_t size, int32_t first_line, int32_t offset);

#endif
