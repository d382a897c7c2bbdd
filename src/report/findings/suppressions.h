// Suppression files: which errors not to show.
//
//     {
//        a name for it
//        Memcheck:Leak
//        match-leak-kinds: definite
//        fun:malloc
//        ...
//        obj:*/libfoo.so*
//     }
//
// The syntax is Valgrind's; `include FILE` outside of braces is ours (relative to the file it
// stands in). A pattern must match from the innermost frame on; frames beyond it do not matter.
// fun: is compared with the name as the linker knows it and as it is shown, with and without symbol
// versions.
//
// Words: a *suppression* is one entry; *locations* are its fun, obj, src and `...` lines.
//
// Files are the user's text, and sizes are limited: any content gives entries or an error message.
// Supervisor only.
#ifndef QUERN_REPORT_SUPPRESSIONS_H
#define QUERN_REPORT_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "report/shared/named_stack.h"

struct suppressions;

struct suppression {
    char *name;
    char *file; // where it stands; the line is that of the name
    unsigned line;
    uint64_t used;                        // errors suppressed
    uint64_t leaked_bytes, leaked_blocks; // of losses among them
};

// What is to be matched.
struct suppression_subject {
    const char *kind;      // "Addr4", "Cond", "Leak"
    const char *parameter; // of Param: its name; of FishyValue: "function(argument)"; else NULL
    unsigned leak_kind;    // of Leak: the bit 1 << enum leak_kind
    const struct named_stack *stack;
};

struct suppressions *suppressions_new(void); // of memory errors
// Takes the entries of this tool, as they name it: "Helgrind".
struct suppressions *suppressions_new_for(const char *tool);
void suppressions_free(struct suppressions *);
// Reads a file. NULL, or what is wrong with it, to be freed: several lines, the first of which
// names file and line.
char *suppressions_read(struct suppressions *, const char *path);
// The same for text that is in memory. `path` is for messages and relative includes.
char *suppressions_parse(struct suppressions *, const char *text, size_t size, const char *path);

// The suppression that matches, NULL: none. The caller raises its counts.
struct suppression *suppressions_match(struct suppressions *, const struct suppression_subject *);
// Those that were used, in the order of Valgrind's list: the latest to match come first.
struct suppression *suppressions_next_used(struct suppressions *, struct suppression *after);
size_t suppressions_count(const struct suppressions *);
// What Valgrind's -s says of a used one, without an end of line.
void suppressions_used_text(const struct suppression *, struct text *);

#endif
