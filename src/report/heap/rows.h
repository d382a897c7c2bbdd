// What the formats of heap_export share: going through the stacks of a recording, and writing names
// that may contain anything. The writers of the formats stand at the end.
//
// A row is a stack with its sums (struct summary_site).
#ifndef QUERN_REPORT_HEAP_ROWS_H
#define QUERN_REPORT_HEAP_ROWS_H

#include "report/heap/export.h"

// How text of the target is written; what no line can hold becomes \xNN in all of them.
enum rows_style {
    ROWS_FOLDED, // semicolons become colons
    ROWS_JSON,   // without the quotes around it
    ROWS_PLAIN,
};

void rows_text(FILE *out, const char *text, enum rows_style style);
// A string with its quotes.
void rows_json(FILE *out, const char *text);

// Whether the stack has anything to show.
bool rows_has(const struct summary_site *site);

// Calls frame for each frame of the stack, innermost first; for the mark of a stack that is cut
// short or unknown with place NULL and the mark as the frame's name.
void rows_frames(const struct heap_file *file, uint32_t stack,
                 void (*frame)(void *context, const struct heap_place *place,
                               const struct symbol_frame *frame),
                 void *context);

// The stack as at most `callers` lines of text: "   at FUNCTION (FILE:LINE)".
void rows_stack(FILE *out, const struct heap_file *file, uint32_t stack, size_t callers);

// The stacks that have some of the weight, as a tree of calls from the outermost function or
// (bottom_up) from the innermost, with at most `nodes` nodes. To be freed by calltree_free.
struct calltree *rows_tree(const struct heap_file *file, const struct heap_weight *weight,
                           bool bottom_up, size_t nodes);

// The stack, folded; to be freed.
char *rows_folded(const struct heap_file *file, uint32_t stack);

// All stacks of some weight, folded, in the order of their bytes. Stacks that differ in addresses
// only are one: so the same program gives the same lines, wherever it was loaded.
struct rows_line {
    char *folded;
    uint64_t value;
};

struct rows_line *rows_lines(const struct heap_file *file, const struct heap_weight *weight,
                             size_t *count);
// Sorts lines and adds up equal ones; how many are left.
size_t rows_lines_merge(struct rows_line *lines, size_t count);
void rows_lines_free(struct rows_line *lines, size_t count);

void rows_collapsed(FILE *out, const struct heap_export *export);
void rows_csv(FILE *out, const struct heap_export *export);
void rows_json_file(FILE *out, const struct heap_export *export);
void rows_flamegraph(FILE *out, const struct heap_export *export);
void rows_pprof(FILE *out, const struct heap_export *export);
// Adds a frame to a sample of a struct pprof; for rows_frames.
void rows_pprof_frame(void *profile, const struct heap_place *place,
                      const struct symbol_frame *frame);
void rows_heaptrack(FILE *out, const struct heap_export *export);
void rows_speedscope(FILE *out, const struct heap_export *export);

#endif
