// The target's call stack, as seen from the engine.
#ifndef QUERN_ENGINE_RUN_STACK_H
#define QUERN_ENGINE_RUN_STACK_H

#include <stddef.h>
#include <stdint.h>

// Walks the calling thread's stack from its saved registers. Writes at most max pcs, innermost
// first, and returns how many. Modules are looked up when first needed, from the ledger.
size_t stack_of_task(uint64_t *pcs, size_t max);

#endif
