// --trace-malloc (trace_calls.c).
#ifndef QUERN_TOOLS_TRACE_CALLS_H
#define QUERN_TOOLS_TRACE_CALLS_H

#include "tools/shared/allocators.h"

// What to call instead of the hook; the hook itself if nothing is traced. Numbers are below
// ALLOCATORS_SYMBOLS, each is used once.
allocators_hook *trace_calls_of(unsigned number, const char *name, allocators_hook *hook);

#endif
