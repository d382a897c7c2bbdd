// Replaced functions that are called all the time with little to do, done without the price of a
// hook (tool_quick_hook). They do what goes well; everything else is left to the hook, reports
// included. General registers only.
#ifndef QUERN_MEMCHECK_QUICK_H
#define QUERN_MEMCHECK_QUICK_H

#include "engine/tool.h"

tool_quick_hook *quick_hook(void (*hook)(void));

#endif
