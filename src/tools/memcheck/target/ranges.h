// Ranges of memory that the target names, in system calls and client requests: any address, any
// size, mapped or not. Shadow alone does not tell what is not mapped.
#ifndef QUERN_MEMCHECK_RANGES_H
#define QUERN_MEMCHECK_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/memcheck/target/shadow/shadow.h"

// How much of a range is mapped, from its start on. Memory without shadow counts as mapped.
uint64_t range_mapped(uint64_t address, uint64_t size);
// Whether all of it is mapped and addressable, and, if values count, defined. Otherwise *bad is the
// first byte that is not.
enum shadow_verdict range_check(uint64_t address, uint64_t size, bool values, uint64_t *bad);

#endif
