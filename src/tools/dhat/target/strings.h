// How dhat replaces mem*, str* and wcs* functions (copies.c, strings.c). A function collects its
// accesses in a struct call, which is counted when the function ends. General registers only.
#ifndef QUERN_DHAT_STRINGS_H
#define QUERN_DHAT_STRINGS_H

#include "tools/dhat/target/dhat.h"
#include "tools/shared/string_functions.h"
#include "tools/shared/words.h"

#define ALWAYS static inline __attribute__((always_inline))

enum { WIDE = 4, SPANS = 3 };

struct span {
    uint64_t start;
    size_t size;
};

struct call {
    uint64_t a[4];
    uint64_t result;
    struct span reads[SPANS], writes;
    unsigned read_count;
    bool copies;
    size_t copied;
    unsigned step; // bytes that the function looks at in one go, a power of two
    uint64_t cost;
};

// By bytes, a few instructions for each.
enum { COST_CALL = 8, COST_BYTE = 4, COST_COPIED = 6, COST_TOLOWER = 14 };

// Runs the body of a function with the target's arguments (strings.c). A body takes a struct call;
// it may be started again from the beginning.
void string_call(tool_function *body);

#define HOOK(name)                                                                                 \
    static void on_##name(void) {                                                                  \
        string_call(name##_body);                                                                  \
    }

static inline void reads(struct call *call, uint64_t start, size_t size) {
    call->reads[call->read_count++] = (struct span){start, size};
}

static inline size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t length_of(uint64_t string) {
    return bytes_before(string, 0, 0, SIZE_MAX);
}

static inline uint32_t wide_at(uint64_t string, size_t i) {
    return *(const volatile uint32_t *)(string + WIDE * i);
}

static inline size_t wide_before(uint64_t string, uint32_t a, uint32_t b, size_t most) {
    size_t i = 0;
    while (i < most && wide_at(string, i) != a && wide_at(string, i) != b)
        i++;
    return i;
}

#endif
