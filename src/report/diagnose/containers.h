// Blocks that are enlarged as they fill: vectors, buffers, hash tables.
//
// A container takes memory in jumps, mostly by doubling, so its size says little about whether what
// it holds grows: half of the time it does not change. Its *content* does: just before it was
// enlarged it was full, so at that moment the content is the size before. In between, the content
// is taken to grow as it did before, up to the size.
//
// A container is enlarged by a resize, or by the allocation of a larger block at the same place
// after which the same thread releases the smaller one. The place is the same if the innermost
// frames and the program's own function are.
//
// Work is a number of allocations, the clock of growth.h. Supervisor context.
#ifndef QUERN_REPORT_DIAGNOSE_CONTAINERS_H
#define QUERN_REPORT_DIAGNOSE_CONTAINERS_H

#include "base/map.h"
#include "profile/heap/heap.h"
#include "profile/stacks/stacks.h"

enum { CONTAINER_STEPS = 3 }; // a block is one that was enlarged so often

struct container {
    uint64_t number; // of its block
    uint64_t size;
    uint64_t full;   // content when it was enlarged last
    uint64_t work;   // when that was
    double rate;     // content per work before that
    uint32_t stack;  // of its block
    uint32_t thread; // that enlarged it
    uint32_t steps;  // how often it was enlarged
    bool is_shared;  // several threads enlarged it
    bool is_alive;
};

// The latest blocks of a thread. Between a larger block and the release of the smaller one, a
// container may make the element that it was enlarged for.
enum { CONTAINER_LATEST = 4 };
struct containers_latest {
    struct {
        uint64_t number, size; // number 0: none, or taken
        uint32_t stack;
    } blocks[CONTAINER_LATEST];
    uint32_t next;
};

struct containers {
    const struct stacks *stacks;
    // A number for the program's own function of a stack.
    uint32_t (*function)(void *context, uint32_t stack);
    void *context;
    struct map_integers numbers; // of blocks; the entry is a place in `items`
    struct container *items;
    size_t count, dead;
    struct containers_latest *latest; // by thread
    size_t thread_count;
};

void containers_free(struct containers *);
// What an event changes: the container that is no more, and the one that takes its place.
struct containers_change {
    struct container before; // steps 0: there was none
    struct container now;    // steps 0: there is none
};
// To be called for each event, in order.
void containers_note(struct containers *, const struct heap_event *, uint64_t work,
                     struct containers_change *change);
// Whether the block was enlarged often enough to be called one.
static inline bool container_counts(const struct container *container) {
    return container->steps >= CONTAINER_STEPS;
}
uint64_t container_content(const struct container *, uint64_t work);

#endif
