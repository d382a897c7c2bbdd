// What a process's memory in RAM consists of. Supervisor context.
#ifndef QUERN_ATTACH_RESIDENCY_H
#define QUERN_ATTACH_RESIDENCY_H

#include "attach/walk.h"

// Fills in the census's `resident`. Writable memory is counted as it was when it was copied, other
// memory as it is now.
void residency_count(struct census *census, const struct snapshot *snapshot,
                     const struct heap_range *heaps, size_t heap_count);

#endif
