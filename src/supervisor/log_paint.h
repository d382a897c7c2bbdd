// Colours for the log on a terminal. Lines are recognised by their shape, so every tool's text is
// painted, and the text itself stays as it is: without the sequences, it is what a pipe gets.
//
// Words:
//   heading  the first line of a finding: the line before a stack
//   frame    a line of a stack: "   at 0x401136: main (loop.c:12)"
//   sum      a line of a summary with a number that is bad unless it is 0
#ifndef QUERN_SUPERVISOR_LOG_PAINT_H
#define QUERN_SUPERVISOR_LOG_PAINT_H

#include "base/text.h"
#include "report/shared/paint.h"

// Adds the line of `size` bytes; `next` is the text that follows its line break, "" for the last.
void log_paint_line(struct text *out, const struct paint *paint, const char *line, size_t size,
                    const char *next);
// Adds text in a style.
void log_paint(struct text *out, const struct paint *paint, enum paint_style style,
               const char *text, size_t size);

#endif
