// The counts at the last dump or zero: later reports show the difference to them. The target's own
// counters never decrease, so the target need not stop for a dump.
#ifndef QUERN_SUPERVISOR_COUNTS_BASE_H
#define QUERN_SUPERVISOR_COUNTS_BASE_H

#include <stdint.h>

struct counts_base;

struct counts_base *counts_base_new(void);
void counts_base_free(struct counts_base *); // NULL: nothing

// The increase since the last call; `now` becomes the base. NULL: since the beginning.
uint64_t counts_base_counter(struct counts_base *, uint32_t thread, uint32_t area, uint32_t id,
                             uint64_t now);
// The same for an edge; event COUNTS_EVENTS stands for its calls.
uint64_t counts_base_edge(struct counts_base *, uint32_t thread, uint32_t edge, unsigned event,
                          uint64_t now);
// The sum of all costs of a thread since the beginning, given what came since last time.
uint64_t counts_base_total(struct counts_base *, uint32_t thread, unsigned event, uint64_t more);

#endif
