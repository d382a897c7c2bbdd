// Which frames of a stack are the program's own, and which belong to its allocator, runtime or
// libraries.
//
// The path of the source file decides where it is known; then the object; then the name. Where a
// name alone is known, the crate of a Rust function and the namespace of a C++ one tell. Functions
// of C that allocate or free for others (xmalloc, strdup, free) are recognised by their names and
// are not own. Whatever calls malloc within an allocation function (an operator new or a
// GlobalAlloc that the program brings along) belongs to the allocator, wherever its source is.
//
// --mine replaces that judgement by the user's patterns. Supervisor context.
#ifndef QUERN_REPORT_OWN_H
#define QUERN_REPORT_OWN_H

#include <stdbool.h>
#include <stddef.h>

// Makes own what one of these comma-separated patterns (base/glob.h) matches, and nothing else; the
// text stays. NULL: as described above. To be called once, before anything is read: the choice is
// the command line's and holds for the whole process. A pattern is compared with the function, and
// with the paths of source file and object and each of their ends that begins after a slash.
void own_choose(const char *patterns);

// Whether the frame is own, judged by itself. Any of the three may be NULL.
bool own_frame(const char *name, const char *path, const char *object);
// Whether the object is the program or a library of its own, not of the system.
bool own_object(const char *object);

// Whether the frame belongs to an allocator or to the language's own library, so that no sum is
// worth its name. Either may be NULL.
bool own_is_runtime(const char *name, const char *path);

// The length of a function's name without the closures in it: `a::f` of `a::f::{{closure}}`. 0: the
// name is of a closure alone.
size_t own_without_closures(const char *name);
// Whether the inner one of two functions on a stack is the outer one or a closure in it. Paths may
// be NULL.
bool own_is_within(const char *inner, const char *inner_path, const char *outer,
                   const char *outer_path);

// The library that a function of Rust belongs to by its name: an executor (tokio, futures), or the
// language's own (core, alloc, std).
struct own_runtime {
    const char *name; // in the function's name, or a constant; `length` bytes
    size_t length;
    bool is_language;
};
// False: it belongs to none that is known.
bool own_runtime(const char *name, struct own_runtime *runtime);

// Finds the first own frame of a stack. Begins as {0}.
struct own_search {
    bool found;
};
// To be called for each frame of the stack, from the innermost to the outermost. True: this frame
// is the one looked for, so far. A later one takes its place if what was found lies within an
// allocation function.
bool own_search_next(struct own_search *, const char *name, const char *path, const char *object);

#endif
