// What counts were when they were last written or set to nought: later reports tell the difference.
// The target's counters themselves never go back, so nobody has to stop for it.
#ifndef QUERN_SUPERVISOR_COUNTS_BASE_H
#define QUERN_SUPERVISOR_COUNTS_BASE_H

#include <stdint.h>

struct counts_base;

struct counts_base *counts_base_new(void);
void counts_base_free(struct counts_base *); // NULL: nothing

// How much more it is than last time; it is the base from now on. NULL: since the beginning.
uint64_t counts_base_counter(struct counts_base *, uint32_t thread, uint32_t area, uint32_t id,
                             uint64_t now);
// Of an edge; event COUNTS_EVENTS stands for its calls.
uint64_t counts_base_edge(struct counts_base *, uint32_t thread, uint32_t edge, unsigned event,
                          uint64_t now);
// The sum of all costs of a thread since the beginning, given what came since last time.
uint64_t counts_base_total(struct counts_base *, uint32_t thread, unsigned event, uint64_t more);

#endif
