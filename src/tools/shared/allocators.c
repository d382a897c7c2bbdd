#include "tools/shared/allocators.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tools/shared/trace_calls.h"

enum { MODULES = 1024 };

#define LIBRARIES "libc.so*|libc-*.so|ld-musl-*|libc.musl-*|libstdc++*|libc++*|"
#define OTHERS                                                                                     \
    "*jemalloc*.so*|*tcmalloc*.so*|*mimalloc*.so*|*hoard*.so*|*snmalloc*.so*|*rpmalloc*.so*"       \
    "|" TOOL_ALLOCATOR

// The pattern of somalloc; its size is 0 if the user gave none.
static const char *find_pattern(int *size) {
    const char *option = tool_option("soname-synonyms");
    const char *pattern = option ? strstr(option, "somalloc=") : NULL;
    if (pattern)
        pattern += strlen("somalloc=");
    *size = pattern ? (int)strcspn(pattern, ",") : 0;
    return pattern;
}

static bool is_none(const char *pattern, int size) {
    return size == 4 && strncmp(pattern, "NONE", 4) == 0;
}

const char *allocators_modules(void) {
    static char modules[MODULES];
    int size;
    const char *pattern = find_pattern(&size);
    if (*modules)
        return modules;
    if (!size)
        strcpy(modules, LIBRARIES OTHERS);
    else if (is_none(pattern, size))
        strcpy(modules, LIBRARIES TOOL_ANY_PROGRAM);
    else
        snprintf(modules, sizeof modules, "%s%.*s", LIBRARIES, size, pattern);
    return modules;
}

const struct allocators *allocators_hooks;
bool allocators_has_own;

const char *allocators_family_modules(void) {
    static char modules[MODULES];
    int size;
    const char *pattern = find_pattern(&size);
    if (!*modules && size && !is_none(pattern, size))
        snprintf(modules, sizeof modules, "%.*s", size, pattern);
    else if (!*modules)
        strcpy(modules, size ? TOOL_ANY_PROGRAM : "*");
    return allocators_hooks ? modules : NULL;
}

#define OF(hook) offsetof(struct allocators, hook)

static const struct {
    const char *name;
    size_t hook;
    size_t otherwise; // the hook if that is NULL
} names[] = {
    {"malloc", OF(malloc), OF(malloc)},
    {"calloc", OF(calloc), OF(calloc)},
    {"realloc", OF(realloc), OF(realloc)},
    {"reallocarray", OF(reallocarray), OF(reallocarray)},
    {"free", OF(free), OF(free)},
    {"cfree", OF(free), OF(free)},
    {"free_sized", OF(free_sized), OF(free)},
    {"free_aligned_sized", OF(free_aligned_sized), OF(free)},
    {"memalign", OF(memalign), OF(memalign)},
    {"aligned_alloc", OF(aligned_alloc), OF(memalign)},
    {"posix_memalign", OF(posix_memalign), OF(posix_memalign)},
    {"valloc", OF(valloc), OF(valloc)},
    {"pvalloc", OF(pvalloc), OF(pvalloc)},
    {"malloc_usable_size", OF(malloc_usable_size), OF(malloc_usable_size)},
    {"malloc_size", OF(malloc_usable_size), OF(malloc_usable_size)},
    {"mallopt", OF(mallopt), OF(mallopt)},
    {"malloc_trim", OF(malloc_trim), OF(malloc_trim)},
    {"malloc_stats", OF(malloc_trim), OF(malloc_trim)},
    {"mallinfo", OF(mallinfo), OF(mallinfo)},
    {"mallinfo2", OF(mallinfo2), OF(mallinfo2)},
    {"_Znwm", OF(new), OF(new)},
    {"_ZnwmRKSt9nothrow_t", OF(new_nothrow), OF(new_nothrow)},
    {"_ZnwmSt11align_val_t", OF(new_aligned), OF(new_aligned)},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", OF(new_aligned_nothrow), OF(new_aligned_nothrow)},
    {"_Znam", OF(new_array), OF(new_array)},
    {"_ZnamRKSt9nothrow_t", OF(new_array_nothrow), OF(new_array_nothrow)},
    {"_ZnamSt11align_val_t", OF(new_array_aligned), OF(new_array_aligned)},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", OF(new_array_aligned_nothrow),
     OF(new_array_aligned_nothrow)},
    {"_ZdlPv", OF(delete), OF(delete)},
    {"_ZdlPvm", OF(delete_sized), OF(delete)},
    {"_ZdlPvRKSt9nothrow_t", OF(delete), OF(delete)},
    {"_ZdlPvSt11align_val_t", OF(delete_aligned), OF(delete)},
    {"_ZdlPvmSt11align_val_t", OF(delete_sized_aligned), OF(delete)},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", OF(delete_aligned), OF(delete)},
    {"_ZdaPv", OF(delete_array), OF(delete_array)},
    {"_ZdaPvm", OF(delete_array_sized), OF(delete_array)},
    {"_ZdaPvRKSt9nothrow_t", OF(delete_array), OF(delete_array)},
    {"_ZdaPvSt11align_val_t", OF(delete_array_aligned), OF(delete_array)},
    {"_ZdaPvmSt11align_val_t", OF(delete_array_sized_aligned), OF(delete_array)},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", OF(delete_array_aligned), OF(delete_array)},
};

_Static_assert(sizeof names / sizeof *names <= ALLOCATORS_SYMBOLS, "");

static allocators_hook *hook_at(const struct allocators *hooks, size_t offset) {
    allocators_hook *hook;
    memcpy(&hook, (const char *)hooks + offset, sizeof hook);
    return hook;
}

size_t allocators_add(struct tool_symbol *symbols, size_t count, const struct allocators *hooks) {
    allocators_hooks = hooks;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        allocators_hook *hook = hook_at(hooks, names[i].hook);
        if (!hook)
            hook = hook_at(hooks, names[i].otherwise);
        if (hook)
            symbols[count++] =
                (struct tool_symbol){allocators_modules(), names[i].name, TOOL_REPLACE,
                                     trace_calls_of((unsigned)i, names[i].name, hook), NULL};
    }
    return count;
}

// Both structures have ten members: arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks
// fordblks keepcost.
enum { MEMBERS = 10, ARENA = 0, IN_USE = 7 };

size_t allocators_inform(uint8_t to[ALLOCATORS_INFORMATION], uint64_t bytes, bool is_wide) {
    const uint64_t wide[MEMBERS] = {[ARENA] = bytes, [IN_USE] = bytes};
    const uint32_t narrow[MEMBERS] = {[ARENA] = (uint32_t)bytes, [IN_USE] = (uint32_t)bytes};
    _Static_assert(sizeof wide == ALLOCATORS_INFORMATION, "");
    size_t size = is_wide ? sizeof wide : sizeof narrow;
    memcpy(to, is_wide ? (const void *)wide : narrow, size);
    return size;
}

const struct tool_exit_function allocators_exit_functions[] = {
    {"_ZN9__gnu_cxx9__freeresEv", "run-cxx-freeres", false},
    {"__libc_freeres", "run-libc-freeres", true},
    {NULL, NULL, false},
};
