// Values by call stack, as a file: what Valgrind calls an execution tree.
//
// In callgrind's format, for KCachegrind and callgrind_annotate, each stack is written with its
// callers, and their calls include its values. In massif's format, for ms_print and
// massif-visualizer, each event is a snapshot. Supervisor context.
#ifndef QUERN_REPORT_XTREE_H
#define QUERN_REPORT_XTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "report/shared/named_stack.h"

struct xtree_event {
    const char *name, *title;
};

struct xtree_stack {
    const struct named_stack *stack; // borrowed
    uint64_t *values;                // one for each event
};

struct xtree {
    const struct xtree_event *events;
    unsigned event_count;
    bool compress_strings;
    const char *command;
    int pid;
    struct xtree_stack *stacks;
    size_t stack_count;
};

// Only what is shown of the stack counts.
void xtree_add(struct xtree *, const struct named_stack *, const uint64_t *values);
// Merges what has the same stack, then adds the file's text.
void xtree_write(struct xtree *, struct text *);
// The same in massif's format (xtree/massif.c); `milliseconds` since the start.
void xtree_write_massif(struct xtree *, uint64_t milliseconds, const struct stack_text_options *,
                        struct text *);
void xtree_free(struct xtree *);

#endif
