// A dhat.out file from the history of a heap: without accesses, and with time in microseconds.
#ifndef QUERN_DHAT_NATIVE_FILE_H
#define QUERN_DHAT_NATIVE_FILE_H

#include <stdio.h>

#include "profile/heap/lifetimes.h"
#include "profile/stacks/stacks.h"
#include "supervisor/tool.h"

// What lives no longer is short-lived for the viewer, in microseconds.
#define DHAT_NATIVE_BRIEF 500

// `lifetimes` is dhat's. Supervisor context.
void dhat_native(FILE *out, const struct lifetimes *lifetimes, const struct stacks *stacks,
                 struct heap_names *names, const char *command, int pid);

#endif
