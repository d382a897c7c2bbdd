// Valgrind's file patterns: `*` stands for any run of characters, `?` for one; nothing else is
// special. Allocates nothing and calls nothing, so it serves both sides and signal handlers.
#ifndef QUERN_BASE_GLOB_H
#define QUERN_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool glob_match(const char *pattern, const char *string);
// Whether one of the comma-separated patterns matches.
bool glob_match_any(const char *patterns, const char *string);

#endif
