// Replaced functions that are called very often and do little, without the cost of a hook
// (tool_quick_hook). They handle the case without errors; the hook handles all others, reports
// included. General registers only.
#ifndef QUERN_MEMCHECK_QUICK_H
#define QUERN_MEMCHECK_QUICK_H

#include "engine/tool.h"

tool_quick_hook *quick_hook(void (*hook)(void));

#endif
