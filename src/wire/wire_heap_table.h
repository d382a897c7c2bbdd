// The table of stacks in the area of wire_heap.h. Code in the target uses it to number stacks.
// Target context; no locks, general registers only if the caller is compiled so.
#ifndef QUERN_WIRE_WIRE_HEAP_TABLE_H
#define QUERN_WIRE_WIRE_HEAP_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/hash.h"
#include "wire/wire_heap.h"

// Slots tried in each level of the table: a cache line.
#define WIRE_HEAP_PROBES 8

static inline uint64_t wire_heap_hash(const uint64_t *pcs, size_t count, bool truncated) {
    const uint64_t factor = HASH_FACTOR;
    uint64_t lanes[4] = {count + 1, 0x2545f4914f6cdd1d, truncated, 0x6a09e667f3bcc909};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int lane = 0; lane < 4; lane++)
            lanes[lane] = (lanes[lane] ^ pcs[i + lane]) * factor ^ lanes[lane] >> 29;
    for (; i < count; i++)
        lanes[i % 4] = (lanes[i % 4] ^ pcs[i]) * factor ^ lanes[i % 4] >> 29;
    uint64_t hash = 0;
    for (int lane = 0; lane < 4; lane++) {
        hash = (hash ^ lanes[lane]) * factor;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

// The number of the stack with this hash; 0: the table is full. `is_new`: the caller must send the
// stack to the supervisor.
//
// The table grows by further levels, so that a program with few stacks touches few pages. Every
// thread tries the same slots in the same order and none is ever emptied: a stack has one number.
// Two different stacks with one hash would count as one; with 64 bits and a million stacks, the
// odds against that are ten million to one.
static inline uint32_t wire_heap_intern(struct wire_heap_header *area, uint64_t hash,
                                        bool *is_new) {
    _Atomic uint64_t *table = (_Atomic uint64_t *)((char *)area + WIRE_HEAP_STACKS_AT);
    *is_new = false;
    for (unsigned level = 0; level < WIRE_HEAP_LEVELS; level++) {
        uint32_t line =
            (uint32_t)hash % WIRE_HEAP_LEVEL_SIZE(level) / WIRE_HEAP_PROBES * WIRE_HEAP_PROBES;
        for (uint32_t probe = 0; probe < WIRE_HEAP_PROBES; probe++) {
            uint32_t id = WIRE_HEAP_LEVEL_START(level) + line + probe;
            uint64_t found = atomic_load_explicit(&table[id], memory_order_relaxed);
            if (found == hash)
                return id;
            if (found != 0 || id == 0)
                continue;
            if (atomic_compare_exchange_strong(&table[id], &found, hash)) {
                atomic_fetch_add_explicit(&area->stacks, 1, memory_order_relaxed);
                *is_new = true;
                return id;
            }
            if (found == hash)
                return id;
        }
    }
    return 0;
}

#endif
