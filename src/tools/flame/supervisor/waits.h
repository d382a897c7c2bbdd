// Where threads wait (--off-cpu=yes): the stack at which a thread was taken from its CPU, weighed
// by the time until it was back. Only waits count, not being displaced by others.
//
// Stacks are kept as flame.c keeps its own, and are named with them. Supervisor only.
#ifndef QUERN_SUPERVISOR_FLAME_WAITS_H
#define QUERN_SUPERVISOR_FLAME_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/stacks/stack_counts.h"

// The thread has left its CPU with this stack.
void flame_waits_left(int tid, uint64_t time, uint32_t key, const uint64_t *addresses, size_t count,
                      bool broken);
// The same, told afterwards: it was displaced, so that it does not wait.
void flame_waits_displaced(int tid);
// The thread is back.
void flame_waits_back(int tid, uint64_t time);
// Waits that are over, in microseconds; the owner may clear them.
struct stack_counts *flame_waits_stacks(void);
// How many are over, and their nanoseconds.
uint64_t flame_waits_count(void);
uint64_t flame_waits_time(void);
void flame_waits_free(void);

#endif
