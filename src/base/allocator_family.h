// Allocators that programs bring along, known by the names of their functions.
//
// A *family* is the set of functions that share blocks: what one of them makes, another one of the
// same family may resize or free. Code that stands in for a family, or that counts its blocks,
// takes all of these functions or none.
//
// A family is recognised by its *mark*: a function that only this allocator has. The mark may have
// any prefix (je_, _rjem_): the functions of the family then have the same.
//
// Plain data and code without the C library: anybody may use it, in the target as well.
#ifndef QUERN_BASE_ALLOCATOR_FAMILY_H
#define QUERN_BASE_ALLOCATOR_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum allocator_act {
    ALLOCATOR_MAKE,    // returns a block
    ALLOCATOR_ZEROED,  // the same, all zero
    ALLOCATOR_RESIZE,  // returns the block, which may have moved
    ALLOCATOR_REZERO,  // the same; what is new is zero
    ALLOCATOR_EXPAND,  // returns the block if it need not move, or NULL
    ALLOCATOR_GROW,    // resizes a block where it is, if it can; returns its usable size
    ALLOCATOR_COPY,    // returns a block with the bytes of another object
    ALLOCATOR_RELEASE, // frees a block
    ALLOCATOR_SIZE,    // returns the usable size of a block
    ALLOCATOR_OWN,     // makes blocks in a way that nothing here describes
    ALLOCATOR_INSIDE,  // works on the allocator's own memory. Whoever stands in for the allocator
                       // leaves that call out: the allocator was never set up
};

// The arguments are letters, one for each:
//   s size   n count, a factor of the size   b block   a alignment   p where to store the block
//   f flags of jemalloc: alignment, zero     t text to copy   m limit of the text's length
//   y bytes to copy, s of them               v a size that is rounded up to whole pages
//   g a size; the block is aligned to pages  h heap, whose blocks may end together with it,
//                                              or what else only the allocator itself understands
//   . no matter
// With p, the function returns an error number.
struct allocator_function {
    const char *name; // without prefix
    enum allocator_act act;
    const char *arguments;
};

struct allocator_family {
    const char *title; // for the user
    const char *mark;
    size_t mark_size; // without its end
    size_t own;       // characters at the beginning of the mark that belong to the prefix
    const struct allocator_function *functions[3]; // ended by a NULL name; as many as there are
};

enum { ALLOCATOR_FAMILIES = 7, ALLOCATOR_PREFIX = 32 };
extern const struct allocator_family allocator_families[ALLOCATOR_FAMILIES];

// A family in a module.
struct allocator_found {
    const struct allocator_family *family; // NULL: none
    char prefix[ALLOCATOR_PREFIX];
    size_t prefix_size;
};

// Whether the name of a function, of `size` characters, is a family's mark.
bool allocator_recognise(const char *name, size_t size, struct allocator_found *);
// For an allocator of no known family: malloc and its kin, without prefix.
extern const struct allocator_family allocator_unknown;
// The function of the family that has this name, or NULL. C++ functions have no prefix: operators
// in the module of a family are taken for its own.
const struct allocator_function *allocator_function_of(const struct allocator_found *,
                                                       const char *name);

// What a function of a family was called with. The rest of its members is 0.
struct allocator_call {
    enum allocator_act act;
    uint64_t block, size, alignment; // alignment 0: the usual one
    uint64_t place;                  // where to store the block, or 0
    uint64_t text, limit;            // what to copy; the text's longest part
    bool is_text;                    // ends with its first zero
    bool is_refused;                 // the size overflows
    bool is_in_heap;
    unsigned count; // of arguments
};
void allocator_read_call(const struct allocator_function *, const uint64_t arguments[6],
                         struct allocator_call *);

#endif
