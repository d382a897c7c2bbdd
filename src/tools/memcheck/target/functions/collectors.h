// Garbage collectors that scan whole stacks for pointers.
//
// They read and compare words on purpose that were never set or belong to dead variables. All that
// follows from these would be undefined: which blocks are kept, and so which blocks are handed out
// next. So a stack is marked as defined just before a collector scans it.
#ifndef QUERN_MEMCHECK_COLLECTORS_H
#define QUERN_MEMCHECK_COLLECTORS_H

#include "engine/tool.h"

extern const struct tool_symbol collector_symbols[]; // what is watched

#endif
