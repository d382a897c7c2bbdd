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

struct flame_waits {
    // Threads that are off their CPUs; tid 0: free.
    struct flame_wait {
        int tid;
        uint64_t time;
        uint32_t key;
        bool broken;
        uint64_t *addresses;
        size_t count;
    } * list;
    size_t count;
    struct stack_counts stacks; // of waits that are over, in microseconds; the owner may clear them
    uint64_t ended, nanoseconds; // how many are over, and how long they were
};

// The thread has left its CPU with this stack.
void flame_waits_left(struct flame_waits *waits, int tid, uint64_t time, uint32_t key,
                      const uint64_t *addresses, size_t count, bool broken);
// Corrects the call before: the thread was displaced, so it does not wait.
void flame_waits_displaced(struct flame_waits *waits, int tid);
// The thread is back.
void flame_waits_back(struct flame_waits *waits, int tid, uint64_t time);
void flame_waits_free(struct flame_waits *waits);

#endif
