// The functions of an allocator, by the names that programs call them by, for tools that stand in
// for them.
//
// Looked for are those of a C library and a C++ library, of the usual libraries that take their
// place, and the program's own if it defines malloc, calloc, realloc and free (statically linked
// programs, allocators linked in); allocators of known families (base/allocator_family.h) in any
// module, with all that they have besides. somalloc=PATTERN among what --soname-synonyms says
// stands for all but the C and C++ libraries; NONE there means the program itself.
#ifndef QUERN_TOOLS_ALLOCATORS_H
#define QUERN_TOOLS_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/tool.h"

#include "base/allocator_family.h"

typedef void allocators_hook(void);
// Serves a call of a function that no member of struct allocators stands in for. The act is MAKE,
// ZEROED, RESIZE, REZERO, EXPAND, GROW, RELEASE or SIZE; a block to be resized may be 0. GROW may
// do nothing: it returns the size.
typedef void allocators_other(const struct allocator_call *);

// NULL: the function stays as it is.
struct allocators {
    allocators_hook *malloc, *calloc, *realloc, *reallocarray, *free;
    allocators_hook *free_sized, *free_aligned_sized; // NULL: free
    allocators_hook *memalign, *posix_memalign, *valloc, *pvalloc;
    allocators_hook *aligned_alloc; // NULL: memalign
    allocators_hook *malloc_usable_size, *mallopt, *malloc_trim, *mallinfo, *mallinfo2;
    allocators_hook *new, *new_nothrow, *new_aligned, *new_aligned_nothrow;
    allocators_hook *new_array, *new_array_nothrow, *new_array_aligned, *new_array_aligned_nothrow;
    allocators_hook *delete, *delete_array;
    // NULL: delete and delete_array.
    allocators_hook *delete_sized, *delete_aligned, *delete_sized_aligned;
    allocators_hook *delete_array_sized, *delete_array_aligned, *delete_array_sized_aligned;
    allocators_other *other;
};

enum { ALLOCATORS_SYMBOLS = 48 };   // at most
enum { ALLOCATORS_ALIGNMENT = 16 }; // of every block, at least

// Where they are looked for (tool_symbol.module). Reads the option when first called.
const char *allocators_modules(void);
// Adds symbols behind those that are there; returns how many there are then.
size_t allocators_add(struct tool_symbol *symbols, size_t count, const struct allocators *);

// tool.allocator_function and tool.allocator_modules, for the hooks added last (family_calls.c).
void allocators_call(void *function);
const char *allocators_family_modules(void);
extern const struct allocators *allocators_hooks; // NULL: none were added
// Whether the program has got blocks of an allocator of its own past the hooks. Hooks then let the
// function itself run (tool_run_itself) for a block that they do not know.
extern bool allocators_has_own;

// What a block is aligned to that was asked for with an alignment of any kind: a power of two.
static inline size_t allocators_alignment(size_t wanted) {
    if (wanted <= ALLOCATORS_ALIGNMENT)
        return ALLOCATORS_ALIGNMENT;
    if (wanted > (size_t)1 << 62)
        return (size_t)1 << 62;
    return (size_t)1 << (64 - __builtin_clzl(wanted - 1));
}

// Whether posix_memalign takes the alignment.
static inline bool allocators_alignment_is_valid(size_t wanted) {
    return wanted && wanted % sizeof(void *) == 0 && !(wanted & (wanted - 1));
}

// What frees the libraries' own memory at the end (tool.exit_functions).
extern const struct tool_exit_function allocators_exit_functions[];

enum { ALLOCATORS_INFORMATION = 80 };
// Writes what mallinfo, or mallinfo2 (is_wide), tells of an allocator that has handed out so many
// bytes. Returns how long it is.
size_t allocators_inform(uint8_t to[ALLOCATORS_INFORMATION], uint64_t bytes, bool is_wide);

#endif
