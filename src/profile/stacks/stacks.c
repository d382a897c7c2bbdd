#include "profile/stacks/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void stacks_set(struct stacks *stacks, uint32_t id, const uint64_t *pcs, size_t count,
                bool truncated) {
    stacks->entries = base_reach(stacks->entries, &stacks->count, id, sizeof *stacks->entries);
    struct stacks_entry *entry = &stacks->entries[id];
    if (entry->pcs && entry->count)
        return;
    free(entry->pcs);
    entry->pcs = base_allocate((count + 1) * sizeof *entry->pcs);
    if (count)
        memcpy(entry->pcs, pcs, count * sizeof *pcs);
    entry->count = (uint32_t)count;
    entry->truncated = truncated;
}

const struct stacks_entry stacks_unknown = {.truncated = true};

void stacks_free(struct stacks *stacks) {
    for (uint32_t i = 0; i < stacks->count; i++)
        free(stacks->entries[i].pcs);
    free(stacks->entries);
    *stacks = (struct stacks){0};
}
