// Part of supervisor/tool.h, for tools that look into the memory of a target that runs natively: stop
// its threads (freeze.h), then read its heap and its roots (leak_memory.h).
#ifndef QUERN_SUPERVISOR_TOOL_MEMORY_H
#define QUERN_SUPERVISOR_TOOL_MEMORY_H

#include "attach/freeze.h"
#include "attach/leak_memory.h"

#endif
