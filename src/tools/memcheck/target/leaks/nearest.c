// Which block of each stack is nearest to a root: a table for each thread, by stack.
#include "base/hash.h"
#include "tools/memcheck/target/leaks/search.h"

static struct leak_near *find(const struct leak_nearest *nearest, uint32_t stack) {
    size_t mask = nearest->room - 1;
    for (size_t i = stack * HASH_FACTOR >> 20;; i++) {
        struct leak_near *near = &nearest->at[i & mask];
        if (!near->held || near->stack == stack)
            return near;
    }
}

static bool grow(struct leak_nearest *nearest) {
    struct leak_nearest larger = {.room = nearest->room ? 2 * nearest->room : 256,
                                  .count = nearest->count};
    larger.at = search_map(larger.room * sizeof *larger.at);
    if (!larger.at)
        return false;
    for (size_t i = 0; i < nearest->room; i++)
        if (nearest->at[i].held)
            *find(&larger, nearest->at[i].stack) = nearest->at[i];
    nearest_free(nearest);
    *nearest = larger;
    return true;
}

// Without memory for it, nobody is told who holds the block; nothing else depends on it.
void nearest_note(struct leak_nearest *nearest, const struct leak_near *near) {
    if (2 * nearest->count >= nearest->room && !grow(nearest))
        return;
    struct leak_near *known = find(nearest, near->stack);
    if (!known->held)
        nearest->count++;
    else if (known->steps < near->steps ||
             (known->steps == near->steps && known->number < near->number))
        return;
    *known = *near;
}

void nearest_free(struct leak_nearest *nearest) {
    search_unmap(nearest->at, nearest->room * sizeof *nearest->at);
    *nearest = (struct leak_nearest){0};
}
