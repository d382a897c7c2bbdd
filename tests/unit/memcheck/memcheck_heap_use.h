// The heap of memcheck as its tests use it.
#ifndef QUERN_TESTS_MEMCHECK_HEAP_USE_H
#define QUERN_TESTS_MEMCHECK_HEAP_USE_H

#include "memcheck_engine.h"
#include "tools/memcheck/target/heap/heap.h"

// Options are read again, and errors forgotten.
static inline void restart(void) {
    static bool is_started;
    if (!is_started)
        engine_start();
    is_started = true;
    heap_start();
    engine_forget_errors();
}

// With one option other than usual.
static inline void restart_with(const char *name, const char *value) {
    engine_set_option(name, value);
    restart();
}

static inline uint64_t make(size_t size) {
    return heap_allocate(size, 0, HEAP_MALLOC, false);
}

static inline void drop(uint64_t block) {
    heap_free(block, &(struct heap_claim){HEAP_MALLOC, "free", "", HEAP_ANY, HEAP_ANY});
}

static inline size_t live_count(void) {
    struct heap_block some[64];
    size_t count = 0, got;
    for (uint64_t from = 0; (got = heap_list_live(from, some, 64)); from = some[got - 1].start + 1)
        count += got;
    return count;
}

#endif
