// mem*, str* and wcs* functions that tools replace, by the names that libraries have them under. A
// tool's hooks are called on_NAME.
#ifndef QUERN_TOOLS_STRING_FUNCTIONS_H
#define QUERN_TOOLS_STRING_FUNCTIONS_H

#include "engine/tool.h"

#define STRING_LIBRARIES "libc.so*|libc-*.so|ld-musl-*|libc.musl-*|" TOOL_PROGRAM

#define STRING_FUNCTION(name, hook)                                                                \
    { STRING_LIBRARIES, name, TOOL_REPLACE, hook, NULL }

// Those that every such tool replaces, as rows of an array of struct tool_symbol: functions that
// copy and fill, and functions that only look.
#define COPY_FUNCTIONS                                                                             \
    STRING_FUNCTION("strcpy", on_strcpy), STRING_FUNCTION("stpcpy", on_stpcpy),                    \
        STRING_FUNCTION("__stpcpy", on_stpcpy), STRING_FUNCTION("strncpy", on_strncpy),            \
        STRING_FUNCTION("stpncpy", on_stpncpy), STRING_FUNCTION("__stpncpy", on_stpncpy),          \
        STRING_FUNCTION("strcat", on_strcat), STRING_FUNCTION("strncat", on_strncat),              \
        STRING_FUNCTION("memcpy", on_memcpy), STRING_FUNCTION("memmove", on_memmove),              \
        STRING_FUNCTION("mempcpy", on_mempcpy), STRING_FUNCTION("__mempcpy", on_mempcpy),          \
        STRING_FUNCTION("bcopy", on_bcopy), STRING_FUNCTION("__memcpy_chk", on_memcpy_chk),        \
        STRING_FUNCTION("__memmove_chk", on_memmove_chk),                                          \
        STRING_FUNCTION("__mempcpy_chk", on_mempcpy_chk),                                          \
        STRING_FUNCTION("__memset_chk", on_memset_chk), STRING_FUNCTION("memset", on_memset),      \
        STRING_FUNCTION("wcscpy", on_wcscpy)
#define STRING_FUNCTIONS                                                                           \
    STRING_FUNCTION("strlen", on_strlen), STRING_FUNCTION("strnlen", on_strnlen),                  \
        STRING_FUNCTION("strcmp", on_strcmp), STRING_FUNCTION("strncmp", on_strncmp),              \
        STRING_FUNCTION("strcasecmp", on_strcasecmp),                                              \
        STRING_FUNCTION("__strcasecmp", on_strcasecmp),                                            \
        STRING_FUNCTION("strcasecmp_l", on_strcasecmp),                                            \
        STRING_FUNCTION("__strcasecmp_l", on_strcasecmp),                                          \
        STRING_FUNCTION("strncasecmp", on_strncasecmp),                                            \
        STRING_FUNCTION("strncasecmp_l", on_strncasecmp),                                          \
        STRING_FUNCTION("__strncasecmp_l", on_strncasecmp), STRING_FUNCTION("memchr", on_memchr),  \
        STRING_FUNCTION("rawmemchr", on_rawmemchr), STRING_FUNCTION("__rawmemchr", on_rawmemchr),  \
        STRING_FUNCTION("memrchr", on_memrchr), STRING_FUNCTION("strchr", on_strchr),              \
        STRING_FUNCTION("index", on_strchr), STRING_FUNCTION("strchrnul", on_strchrnul),           \
        STRING_FUNCTION("strrchr", on_strrchr), STRING_FUNCTION("rindex", on_strrchr),             \
        STRING_FUNCTION("strstr", on_strstr), STRING_FUNCTION("strspn", on_strspn),                \
        STRING_FUNCTION("strcspn", on_strcspn), STRING_FUNCTION("strpbrk", on_strpbrk),            \
        STRING_FUNCTION("memcmp", on_memcmp), STRING_FUNCTION("bcmp", on_memcmp),                  \
        STRING_FUNCTION("__memcmpeq", on_memcmp), STRING_FUNCTION("wcslen", on_wcslen),            \
        STRING_FUNCTION("wcsnlen", on_wcsnlen), STRING_FUNCTION("wcscmp", on_wcscmp),              \
        STRING_FUNCTION("wcsncmp", on_wcsncmp), STRING_FUNCTION("wcschr", on_wcschr),              \
        STRING_FUNCTION("wcsrchr", on_wcsrchr), STRING_FUNCTION("wmemchr", on_wmemchr)

// Ends the program: a __*_chk function was called with a destination that is too small.
void string_functions_overflow(const char *name);

#endif
