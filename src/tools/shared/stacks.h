// Call stacks, each kept once and named by a small number: the target halves of tools that report
// where something happened use it. Numbers begin with 1 and stay valid until the process ends. Any
// thread, without a lock where the stack is known already.
#ifndef QUERN_TOOLS_STACKS_H
#define QUERN_TOOLS_STACKS_H

#include <stddef.h>
#include <stdint.h>

void stacks_start(void); // reads options

// The calling thread's stack, at most --num-callers frames. 0: none could be had. No lock where
// the stack is known already.
uint32_t stack_here(void);
uint32_t stack_intern(const uint64_t *pcs, size_t count);
// Returns how many; *pcs stays valid. No lock.
size_t stack_pcs(uint32_t stack, const uint64_t **pcs);

#endif
