// Garbage collectors that look through stacks for pointers, whatever lies there.
//
// Words of a frame that were never set, or belong to variables that are dead, are read and compared
// on purpose. What depends on them would be undefined from then on: which blocks are kept, and so
// which ones are given out next. A stack counts as defined when it is about to be looked through.
#ifndef QUERN_MEMCHECK_COLLECTORS_H
#define QUERN_MEMCHECK_COLLECTORS_H

#include "engine/tool.h"

extern const struct tool_symbol collector_symbols[]; // what is watched

#endif
