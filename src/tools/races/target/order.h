// Which locks a thread holds; misuse of locks. What is said of a mutex is what the C library's own
// fields say, so a lock that was taken in an unknown way is no reason for a report.
#ifndef QUERN_RACES_ORDER_H
#define QUERN_RACES_ORDER_H

#include <stdbool.h>
#include <stdint.h>

void order_start(void); // reads options
void order_locking(uint64_t lock);
// in_order: by a function that waits, so that its order with other locks matters.
void order_locked(uint64_t lock, bool writes, bool in_order, bool is_mutex);
void order_unlocking(uint64_t lock);
void order_unlocking_mutex(uint64_t lock);
void order_waiting(uint64_t mutex); // on a condition variable
bool order_writes(uint64_t lock);   // whether the thread holds it for writing
void order_made(uint64_t lock);
void order_destroying_mutex(uint64_t lock);
void order_thread_ended(void);
void order_failed(const char *function, int error);
// Waits until both are equal, for a few milliseconds at most.
void order_wait_until(const uint32_t *a, const uint32_t *b);

#endif
