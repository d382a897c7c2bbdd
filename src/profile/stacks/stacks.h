// The stacks of a run: return addresses by number. The source (a running target, a recording) gives
// the numbers and describes each stack once, in any order. Supervisor's side.
#ifndef QUERN_PROFILE_STACKS_H
#define QUERN_PROFILE_STACKS_H

#include "profile/heap/heap.h"

struct stacks {
    struct stacks_entry {
        uint64_t *pcs; // NULL: not known (yet)
        uint32_t count;
        bool truncated; // the walk did not reach the bottom
    } * entries;
    size_t count; // of entries; unknown ones have no pcs
};

// Ignores a second stack with the same number.
void stacks_set(struct stacks *stacks, uint32_t id, const uint64_t *pcs, size_t count,
                bool truncated);
// Never NULL; unknown numbers have no frames.
extern const struct stacks_entry stacks_unknown;
static inline const struct stacks_entry *stacks_get(const struct stacks *stacks, uint32_t id) {
    return id < stacks->count && stacks->entries[id].pcs ? &stacks->entries[id] : &stacks_unknown;
}
void stacks_free(struct stacks *stacks);

#endif
