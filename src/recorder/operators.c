// Replaces operator new and delete in all their variants, by their mangled names.
//
// The real operators are those of the C++ library in use. They may call our malloc, which then has
// recorded the block already. Operators of other allocators may not. So the code forgets the last
// block that malloc recorded before the call, and compares it afterwards: a block is recorded once.
// A C++ library may be loaded long after this one, and invisibly, so the code searches for it when
// first needed.
#include "recorder/recorder.h"

#include <dlfcn.h>
#include <stdlib.h>

static void *find_operator(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
    for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found = dlsym(library, name);
            recorder_next.dlclose(library);
        }
    }
    // Nobody to throw an exception for us either.
    if (!found)
        abort();
    return found;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (UNLIKELY(!real)) {                                                                         \
        recorder_ready();                                                                          \
        real = (__typeof__(&name))find_operator(#name);                                            \
    }

static inline void *made(void *block, size_t size, const uint64_t *frame) {
    if (block && recorder_preloaded_on() && *record_latest() != ~(uint64_t)block)
        record_allocated(block, size, frame);
    return block;
}

#define NEW(name, parameters, arguments)                                                           \
    EXPORT void *name parameters;                                                                  \
    void *name parameters {                                                                        \
        REAL(name)                                                                                 \
        *record_latest() = 0;                                                                      \
        return made(real arguments, size, RECORDER_FRAME);                                         \
    }

#define DELETE(name, parameters, arguments)                                                        \
    EXPORT void name parameters;                                                                   \
    void name parameters {                                                                         \
        if (!block)                                                                                \
            return;                                                                                \
        REAL(name)                                                                                 \
        const void *outer = record_delete_began(block);                                            \
        real arguments;                                                                            \
        record_delete_ended(outer);                                                                \
    }

typedef size_t alignment_t;
typedef const void *nothrow_t;

NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, nothrow_t n), (size, n))
NEW(_ZnamRKSt9nothrow_t, (size_t size, nothrow_t n), (size, n))
NEW(_ZnwmSt11align_val_t, (size_t size, alignment_t a), (size, a))
NEW(_ZnamSt11align_val_t, (size_t size, alignment_t a), (size, a))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, alignment_t a, nothrow_t n), (size, a, n))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, alignment_t a, nothrow_t n), (size, a, n))

DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, nothrow_t n), (block, n))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, nothrow_t n), (block, n))
DELETE(_ZdlPvSt11align_val_t, (void *block, alignment_t a), (block, a))
DELETE(_ZdaPvSt11align_val_t, (void *block, alignment_t a), (block, a))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, alignment_t a), (block, size, a))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, alignment_t a), (block, size, a))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, alignment_t a, nothrow_t n),
       (block, a, n))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, alignment_t a, nothrow_t n),
       (block, a, n))
