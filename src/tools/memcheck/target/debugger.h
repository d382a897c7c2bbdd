// What memcheck shows to gdb beside its commands (monitor.h): the shadow of registers. Called while
// all threads stand still.
#ifndef QUERN_MEMCHECK_DEBUGGER_H
#define QUERN_MEMCHECK_DEBUGGER_H

#include "engine/tool.h"

void debugger_register_shadow(const void *state, enum tool_register_kind kind, unsigned index,
                              uint64_t undefined[2], uint32_t *origin);

#endif
