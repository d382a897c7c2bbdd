// The target's errno, for replaced functions that fail as the C library's do. It is the target's C
// library that says where errno lies; Quern reads its function and never calls it.
#ifndef QUERN_TOOLS_TARGET_ERRNO_H
#define QUERN_TOOLS_TARGET_ERRNO_H

#include <stdint.h>

#include "engine/tool.h"

// By this it is found: to be among the tool's symbols.
struct tool_symbol target_errno_symbol(void);
// Sets the calling thread's. Returns where it lies; 0: it could not be found. Vector registers are
// saved.
uint64_t target_errno_set(int value);

#endif
