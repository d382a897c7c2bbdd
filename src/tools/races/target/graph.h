// The order in which locks are taken: an edge from each lock that a thread holds to the one that it
// takes. A cycle means that threads may wait for each other for ever, unless one more lock is held
// whenever any of these edges is gone along.
#ifndef QUERN_RACES_GRAPH_H
#define QUERN_RACES_GRAPH_H

#include "tools/races/target/races.h"

extern bool graph_is_wanted;
// The thread has taken the lock, with the stack, by a function that waits.
void graph_add(struct races_thread *, uint64_t lock, uint32_t stack);
// A block of memory was handed out: locks that it held are gone.
void graph_memory_is_new(uint64_t start, uint64_t size);
void graph_forked(void);

#endif
