#include "tools/shared/allocators.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MODULES = 1024 };

#define LIBRARIES "libc.so*|libc-*.so|ld-musl-*|libc.musl-*|libstdc++*|libc++*|"
#define OTHERS                                                                                     \
    "*jemalloc*.so*|*tcmalloc*.so*|*mimalloc*.so*|*hoard*.so*|*snmalloc*.so*|*rpmalloc*.so*"       \
    "|" TOOL_PROGRAM

const char *allocators_modules(void) {
    static char modules[MODULES];
    const char *option = tool_option("soname-synonyms");
    const char *pattern = option ? strstr(option, "somalloc=") : NULL;
    int size = 0;
    if (*modules)
        return modules;
    if (pattern) {
        pattern += strlen("somalloc=");
        size = (int)strcspn(pattern, ",");
    }
    if (!size)
        strcpy(modules, LIBRARIES OTHERS);
    else if (size == 4 && strncmp(pattern, "NONE", 4) == 0)
        strcpy(modules, LIBRARIES TOOL_PROGRAM);
    else
        snprintf(modules, sizeof modules, "%s%.*s", LIBRARIES, size, pattern);
    return modules;
}

#define OF(hook) offsetof(struct allocators, hook)

static const struct {
    const char *name;
    size_t hook;
} names[] = {
    {"malloc", OF(malloc)},
    {"calloc", OF(calloc)},
    {"realloc", OF(realloc)},
    {"reallocarray", OF(reallocarray)},
    {"free", OF(free)},
    {"cfree", OF(free)},
    {"free_sized", OF(free)},
    {"free_aligned_sized", OF(free)},
    {"memalign", OF(memalign)},
    {"aligned_alloc", OF(memalign)},
    {"posix_memalign", OF(posix_memalign)},
    {"valloc", OF(valloc)},
    {"pvalloc", OF(pvalloc)},
    {"malloc_usable_size", OF(malloc_usable_size)},
    {"malloc_size", OF(malloc_usable_size)},
    {"mallopt", OF(mallopt)},
    {"malloc_trim", OF(malloc_trim)},
    {"malloc_stats", OF(malloc_trim)},
    {"mallinfo", OF(mallinfo)},
    {"mallinfo2", OF(mallinfo2)},
    {"_Znwm", OF(new)},
    {"_ZnwmRKSt9nothrow_t", OF(new_nothrow)},
    {"_ZnwmSt11align_val_t", OF(new_aligned)},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", OF(new_aligned_nothrow)},
    {"_Znam", OF(new_array)},
    {"_ZnamRKSt9nothrow_t", OF(new_array_nothrow)},
    {"_ZnamSt11align_val_t", OF(new_array_aligned)},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", OF(new_array_aligned_nothrow)},
    {"_ZdlPv", OF(delete)},
    {"_ZdlPvm", OF(delete)},
    {"_ZdlPvRKSt9nothrow_t", OF(delete)},
    {"_ZdlPvSt11align_val_t", OF(delete)},
    {"_ZdlPvmSt11align_val_t", OF(delete)},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", OF(delete)},
    {"_ZdaPv", OF(delete_array)},
    {"_ZdaPvm", OF(delete_array)},
    {"_ZdaPvRKSt9nothrow_t", OF(delete_array)},
    {"_ZdaPvSt11align_val_t", OF(delete_array)},
    {"_ZdaPvmSt11align_val_t", OF(delete_array)},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", OF(delete_array)},
};

_Static_assert(sizeof names / sizeof *names <= ALLOCATORS_SYMBOLS, "");

size_t allocators_add(struct tool_symbol *symbols, size_t count, const struct allocators *hooks) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        allocators_hook *hook;
        memcpy(&hook, (const char *)hooks + names[i].hook, sizeof hook);
        if (hook)
            symbols[count++] =
                (struct tool_symbol){allocators_modules(), names[i].name, TOOL_REPLACE, hook, NULL};
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
