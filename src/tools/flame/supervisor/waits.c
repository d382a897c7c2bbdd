#include "tools/flame/supervisor/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// A thread that is off its CPU; tid 0: free.
struct wait {
    int tid;
    uint64_t time;
    uint32_t key;
    bool broken;
    uint64_t *addresses;
    size_t count, room;
};

static struct wait *waits;
static size_t wait_count;
static struct stack_counts stacks;
static uint64_t ended, nanoseconds;

// The thread's wait. If it has none: a free one, or NULL unless it is to be made.
static struct wait *find(int tid, bool make) {
    struct wait *unused = NULL;
    for (size_t i = 0; i < wait_count; i++) {
        if (waits[i].tid == tid)
            return &waits[i];
        if (!waits[i].tid)
            unused = &waits[i];
    }
    if (!make)
        return NULL;
    if (unused)
        return unused;
    waits = base_reallocate(waits, (wait_count + 1) * sizeof *waits);
    waits[wait_count] = (struct wait){0};
    return &waits[wait_count++];
}

void flame_waits_left(int tid, uint64_t time, uint32_t key, const uint64_t *addresses, size_t count,
                      bool broken) {
    struct wait *wait = find(tid, true);
    if (count > wait->room) {
        wait->room = 2 * count;
        wait->addresses = base_reallocate(wait->addresses, wait->room * sizeof *addresses);
    }
    if (count)
        memcpy(wait->addresses, addresses, count * sizeof *addresses);
    wait->tid = tid;
    wait->time = time;
    wait->key = key;
    wait->broken = broken;
    wait->count = count;
}

void flame_waits_displaced(int tid) {
    struct wait *wait = find(tid, false);
    if (wait)
        wait->tid = 0;
}

void flame_waits_back(int tid, uint64_t time) {
    struct wait *wait = find(tid, false);
    if (!wait)
        return;
    wait->tid = 0;
    if (time <= wait->time)
        return;
    ended++;
    nanoseconds += time - wait->time;
    uint64_t microseconds = (time - wait->time) / 1000;
    if (microseconds)
        stack_counts_add(&stacks, wait->key, wait->addresses, wait->count, wait->broken,
                         microseconds);
}

struct stack_counts *flame_waits_stacks(void) {
    return &stacks;
}

uint64_t flame_waits_count(void) {
    return ended;
}

uint64_t flame_waits_time(void) {
    return nanoseconds;
}

void flame_waits_free(void) {
    for (size_t i = 0; i < wait_count; i++)
        free(waits[i].addresses);
    free(waits);
    stack_counts_clear(&stacks);
    waits = NULL;
    wait_count = 0;
}
