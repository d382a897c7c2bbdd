// Which frames of an allocation's stack are shown, and under which names.
//
// Words:
//   alloc function   one that allocates for others: frames of such functions are taken off the
//                    inner end of a stack, so that it begins with who wanted the memory
//   place            an address of the target in a stack: where a call is, one byte before the
//                    return address. Inlined functions are further frames at the same place
//
// Names are matched whole, C++ ones with their parameters, as Valgrind does. Results are kept: each
// address is resolved once. Supervisor context.
#ifndef QUERN_REPORT_HEAP_NAMES_H
#define QUERN_REPORT_HEAP_NAMES_H

#include "profile/stacks/stacks.h"
#include "report/shared/stack_text.h"
#include "symbols/symbols.h"

struct heap_names_options {
    const char *const *alloc_fns; // besides malloc, operator new and their like
    size_t alloc_fn_count;
    const char *const *ignore_fns;
    size_t ignore_fn_count;
    size_t depth; // most frames left
    struct stack_text_options text;
};

struct heap_place {
    uint64_t address;            // of the call; 0: unknown
    size_t count;                // at least 1
    char **texts;                // "FUNC (FILE:LINE)", innermost first
    struct symbol_frame *frames; // as many; without a name or file where none is known
    bool is_alloc;               // all frames here are alloc functions
    bool is_main;                // main or what comes before it
    const char *name;            // of the innermost frame that is no alloc function; may be NULL
};

// malloc, operator new and their like, by the whole name.
bool heap_names_allocates(const char *name);

struct heap_names;

struct heap_names *heap_names_new(struct symbols *symbols, pid_t pid,
                                  const struct heap_names_options *options);
void heap_names_free(struct heap_names *names);

// What is there; the pointer lives as long as the names.
const struct heap_place *heap_names_place(struct heap_names *names, uint64_t return_address);

// The part of a stack that is shown: from *first on, the number returned.
size_t heap_names_trim(struct heap_names *names, const struct stacks_entry *stack, size_t *first);

// Whether --ignore-fn leaves this stack out.
bool heap_names_ignored(struct heap_names *names, const struct stacks_entry *stack);

#endif
