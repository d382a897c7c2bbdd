// How a report looks on a terminal: colour, bars, and lines no longer than it is wide.
//
// A report takes a `const struct paint *` with its options; NULL stands for plain text, which is
// what pipes, files and logs get. Every sequence and every bar comes from here, so a plain report
// cannot hold one by mistake. Names of the target never reach a terminal unescaped (stack_text.h).
// For verbs, and for the log of a run on a terminal (supervisor/log_paint.h).
#ifndef QUERN_REPORT_PAINT_H
#define QUERN_REPORT_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum paint_style {
    PAINT_PLAIN, // ends any other
    PAINT_TITLE,
    PAINT_NAME,
    PAINT_FAINT,
    PAINT_BAD,
    PAINT_WARNING,
    PAINT_GOOD,
};

struct paint {
    bool colour;
    bool unicode;
    unsigned width; // columns; 0: as wide as need be
};

enum paint_choice { PAINT_AUTO, PAINT_ALWAYS, PAINT_NEVER };

// Sets up a paint for the output. PAINT_AUTO: plain unless it is a terminal and NO_COLOR is not
// set. False: plain.
bool paint_choose(struct paint *paint, enum paint_choice choice, int fd);

// The sequence that switches to a style; "" where there is no colour.
const char *paint_code(const struct paint *paint, enum paint_style style);

enum { PAINT_CELLS = 10, PAINT_BAR = PAINT_CELLS * 4 + 32 };
// A bar for a share of 1, PAINT_CELLS wide, and a space; "" where there is no colour.
const char *paint_bar(char bar[PAINT_BAR], const struct paint *paint, double share);

// Writes a name, escaped, and cut with an ellipsis where it would go beyond the width when it
// begins in this column. The columns it took.
size_t paint_name(FILE *out, const struct paint *paint, const char *name, size_t column);

#endif
