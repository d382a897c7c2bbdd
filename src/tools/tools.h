// The tools that the engine can run.
#ifndef QUERN_TOOLS_TOOLS_H
#define QUERN_TOOLS_TOOLS_H

#include "engine/tool.h"

extern const struct tool tool_none, tool_lackey, tool_cachegrind, tool_memcheck;
extern struct tool tool_callgrind; // chooses hooks at its start
extern const struct tool tool_heap, tool_massif, tool_dhat;

// The tool of that name, or NULL.
const struct tool *tools_find(const char *name);

#endif
