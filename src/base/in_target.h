// What code that runs inside the target must not call. The compiler refuses it.
//
// Such code runs in signal handlers, in place of the target's allocator, and in the middle of the
// target's instructions. It must not allocate by the target's allocator, print, or take locks of
// the C library. meson.build includes this header into every file of the recorder, the agent and
// the plain parts of the engine (-include); wire_target.c includes it itself.
//
// IN_TARGET_PLAIN: generated code calls these files without saving vector registers, so they use
// general registers only. The C library's functions do not keep to that. Copies and comparisons of
// memory are fine: the compiler writes them out (tools_plain_arguments).
#ifndef QUERN_BASE_IN_TARGET_H
#define QUERN_BASE_IN_TARGET_H

// The declarations come first: a header may not mention a name that is refused already.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// For the slow paths of plain files, which are called with the target's registers saved.
extern void *slow_allocate(size_t size) __asm__("malloc");
extern void slow_free(void *memory) __asm__("free");

#pragma GCC poison fprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf dprintf
#pragma GCC poison asprintf vasprintf puts fputs fopen fdopen freopen fclose fread fwrite fgets
#pragma GCC poison getline perror scanf fscanf sscanf strdup strndup qsort setenv putenv strftime

// Some names also stand for something else: an attribute, a function that a tool replaces. Only
// calls of these are refused.
#define IN_TARGET_REFUSED __attribute__((error("not to be called inside the target")))
extern int printf(const char *restrict, ...) IN_TARGET_REFUSED;

#ifdef IN_TARGET_PLAIN
#pragma GCC poison strtol strtoul strtoull strtod atoi strtok bsearch getenv memmem
extern void *malloc(size_t) IN_TARGET_REFUSED;
extern void *calloc(size_t, size_t) IN_TARGET_REFUSED;
extern void *realloc(void *, size_t) IN_TARGET_REFUSED;
extern void *aligned_alloc(size_t, size_t) IN_TARGET_REFUSED;
extern int posix_memalign(void **, size_t, size_t) IN_TARGET_REFUSED;
extern void free(void *) IN_TARGET_REFUSED;
#endif

#endif
