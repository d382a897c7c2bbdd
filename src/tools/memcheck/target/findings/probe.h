// Probes of the stack: accesses of code that touches its stack before the stack reaches there, so
// that an overflow shows early (Java's compiled code: `mov %eax, -0x14000(%rsp)`). Only such code
// names a place a page or more below the stack pointer by a fixed distance: an access through a
// pointer into a frame that is gone has no such form, and one closer by is a mistake.
#ifndef QUERN_MEMCHECK_PROBE_H
#define QUERN_MEMCHECK_PROBE_H

#include <stdbool.h>
#include <stdint.h>

// Whether the instruction at hand accesses `address` as a probe of the thread's own stack.
bool probe_is_at(uint64_t address);

#endif
