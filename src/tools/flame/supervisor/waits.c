#include "tools/flame/supervisor/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

// The thread's wait. If it has none: a free one, or NULL unless it is to be made.
static struct flame_wait *find(struct flame_waits *waits, int tid, bool make) {
    struct flame_wait *unused = NULL;
    for (size_t i = 0; i < waits->count; i++) {
        if (waits->list[i].tid == tid)
            return &waits->list[i];
        if (!waits->list[i].tid)
            unused = &waits->list[i];
    }
    if (!make)
        return NULL;
    if (unused)
        return unused;
    struct flame_wait *wait = vector_push(waits->list, waits->count);
    *wait = (struct flame_wait){0};
    return wait;
}

void flame_waits_left(struct flame_waits *waits, int tid, uint64_t time, uint32_t key,
                      const uint64_t *addresses, size_t count, bool broken) {
    struct flame_wait *wait = find(waits, tid, true);
    wait->count = 0;
    if (count)
        memcpy(vector_extend(wait->addresses, wait->count, count), addresses,
               count * sizeof *addresses);
    wait->tid = tid;
    wait->time = time;
    wait->key = key;
    wait->broken = broken;
}

void flame_waits_displaced(struct flame_waits *waits, int tid) {
    struct flame_wait *wait = find(waits, tid, false);
    if (wait)
        wait->tid = 0;
}

void flame_waits_back(struct flame_waits *waits, int tid, uint64_t time) {
    struct flame_wait *wait = find(waits, tid, false);
    if (!wait)
        return;
    wait->tid = 0;
    if (time <= wait->time)
        return;
    waits->ended++;
    waits->nanoseconds += time - wait->time;
    uint64_t microseconds = (time - wait->time) / 1000;
    if (microseconds)
        stack_counts_add(&waits->stacks, wait->key, wait->addresses, wait->count, wait->broken,
                         microseconds);
}

void flame_waits_free(struct flame_waits *waits) {
    for (size_t i = 0; i < waits->count; i++)
        free(waits->list[i].addresses);
    free(waits->list);
    stack_counts_clear(&waits->stacks);
    *waits = (struct flame_waits){0};
}
