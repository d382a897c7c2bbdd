// From sampled stacks to a tree of named calls.
//
// Inlined functions become nodes of their own. Code without a name goes by its file in brackets. A
// stack whose outer part is missing stands on a node [cut short], so that it is not taken for a
// program of its own; samples without any user code stand at [kernel]. What called main is left out
// unless it is wanted.
//
// A function that ends by jumping to another (a tail call) has left the stack. If its caller called
// it by name, the instruction at the caller still says so: it becomes a node again, as it is one
// of callgrind's.
//
// The frames of an interpreter take the place of the calls that ran them. Supervisor only.
#ifndef QUERN_FLAME_NAMES_H
#define QUERN_FLAME_NAMES_H

#include <stdbool.h>

#include "base/text.h"
#include "profile/stacks/calltree.h"
#include "supervisor/tool.h"
#include "tools/flame/supervisor/moments.h"
#include "tools/flame/supervisor/space.h"
#include "wire/wire_samples.h"

// The largest stack: of the kernel, the program and its interpreter.
enum { FLAME_STACK_MAX = FLAME_KERNEL_MAX + FLAME_FRAMES_MAX + SAMPLES_FRAMES };

struct flame_names;

struct flame_names_options {
    bool show_below_main;
    bool fold_runtimes, fold_others; // fold.h
    void *context;                   // of these functions
    // Copies code that a process had at an address; false: it cannot.
    bool (*read_code)(void *context, pid_t pid, uint64_t address, uint8_t *bytes, size_t size);
    // The function in the same file that a pointer, which the code at `from` uses, leads to; 0:
    // none.
    uint64_t (*read_pointer)(void *context, pid_t pid, uint64_t from, uint64_t pointer);
    // Adds the name of an interpreter's frame (interpreted.h).
    void (*add_frame_name)(void *context, uint64_t mark, struct text *name);
    const struct moments *moments; // that stand for addresses in generated code
};

struct flame_names *flame_names_new(struct symbols *symbols, struct calltree *tree,
                                    const struct flame_names_options *options);
void flame_names_free(struct flame_names *names);
// Adds a stack of a process: addresses within the calls, innermost first, then marks of an
// interpreter's frames (interpreted.h). `process` names the
// process in a node at the outer end; NULL: no such node.
void flame_names_add(struct flame_names *names, pid_t pid, const char *process,
                     const uint64_t *stack, size_t count, bool broken, uint64_t value);

#endif
