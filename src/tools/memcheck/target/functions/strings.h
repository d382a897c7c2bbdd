// Replacements of mem*, str* and wcs* functions: hooks, by the files that define them.
#ifndef QUERN_MEMCHECK_STRINGS_H
#define QUERN_MEMCHECK_STRINGS_H

// copies.c
void on_memcpy(void), on_memmove(void), on_mempcpy(void), on_bcopy(void);
void on_memcpy_chk(void), on_memmove_chk(void), on_mempcpy_chk(void);
void on_wmemcpy(void), on_wmemmove(void), on_wmempcpy(void);
void on_wmemcpy_chk(void), on_wmemmove_chk(void), on_wmempcpy_chk(void);
void on_memset(void), on_memset_chk(void), on_wmemset(void), on_wmemset_chk(void), on_bzero(void);
void on_memcmp(void);
// strings.c
void on_strlen(void), on_strchr(void), on_strcmp(void), on_strcasecmp(void);

#endif
