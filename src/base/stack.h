// Running a function on a stack that is large enough, whatever the limit on stacks (ulimit -s) is:
// for the parts of the supervisor that recurse or have large variables. Not for signal handlers,
// and not within itself.
#ifndef QUERN_BASE_STACK_H
#define QUERN_BASE_STACK_H

#include <stddef.h>

// Calls the function: on the stack of the process if that may grow to this size, otherwise on
// another one. For the first thread, once. Where there is no memory either, the stack stays.
void stack_call(size_t size, void (*function)(void));

#endif
