// Part of supervisor/tool.h, for tools that walk stacks of targets that run natively, from copies
// of registers and stack memory.
//
// Open an unwind_space for each process. Add modules by the contents of their files
// (unwind_space_add_file, with mapped = false, within guard_run: a file may become shorter while it
// is read), and walk with unwind_step. The unwind_memory must have a `read` function and no bounds:
// nothing of the target is mapped here. The functions that take a struct unwind_thread are for
// code inside the target.
#ifndef QUERN_SUPERVISOR_TOOL_WALK_H
#define QUERN_SUPERVISOR_TOOL_WALK_H

#include "base/guard.h"
#include "unwind/unwind.h"

#endif
