// --trace-malloc: a line for each call of a function that a tool stands in for.
// allocators.c wraps the hooks of a tool when it makes the table of symbols.
#ifndef QUERN_TOOLS_TRACE_CALLS_H
#define QUERN_TOOLS_TRACE_CALLS_H

#include "tools/shared/allocators.h"

// What to call instead of the hook; the hook itself if nothing is traced. Numbers are below
// ALLOCATORS_SYMBOLS, each is used once.
allocators_hook *trace_calls_of(unsigned number, const char *name, allocators_hook *hook);

#endif
