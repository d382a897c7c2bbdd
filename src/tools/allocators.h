// The functions of an allocator, by the names that programs call them by, for tools that stand in
// for them.
//
// Looked for are those of a C library and a C++ library, of the usual libraries that take their
// place, and the program's own if it defines malloc, calloc, realloc and free (statically linked
// programs, allocators linked in). somalloc=PATTERN among what --soname-synonyms says stands for
// all but the C and C++ libraries; NONE there means the program itself.
#ifndef QUERN_TOOLS_ALLOCATORS_H
#define QUERN_TOOLS_ALLOCATORS_H

#include "engine/tool.h"

typedef void allocators_hook(void);

// NULL: the function stays as it is.
struct allocators {
    allocators_hook *malloc, *calloc, *realloc, *reallocarray, *free;
    allocators_hook *memalign, *posix_memalign, *valloc, *pvalloc;
    allocators_hook *malloc_usable_size, *mallopt, *malloc_trim, *mallinfo, *mallinfo2;
    allocators_hook *new, *new_nothrow, *new_aligned, *new_aligned_nothrow;
    allocators_hook *new_array, *new_array_nothrow, *new_array_aligned, *new_array_aligned_nothrow;
    allocators_hook *delete, *delete_array;
};

enum { ALLOCATORS_SYMBOLS = 48 }; // at most

// Where they are looked for (tool_symbol.module). Reads the option when first called.
const char *allocators_modules(void);
// Adds symbols behind those that are there; returns how many there are then.
size_t allocators_add(struct tool_symbol *symbols, size_t count, const struct allocators *);

#endif
