// The tools that the engine can run: the target halves of the table in src/tools/meson.build.
#ifndef QUERN_TOOLS_TOOLS_H
#define QUERN_TOOLS_TOOLS_H

#include "engine/tool.h"

#define TARGET(id) extern const struct tool tool_##id;
#include "tools/tools.inc"

// The tool of that name, or NULL.
const struct tool *tools_find(const char *name);

#endif
