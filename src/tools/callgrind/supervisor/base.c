#include "tools/callgrind/supervisor/base.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/call_counts.h"

struct row {
    uint64_t *values; // by number (base_reach)
    size_t room;
};

struct thread_base {
    struct row areas[COUNTS_AREAS];
    struct row edges;
    uint64_t totals[COUNTS_EVENTS];
};

struct counts_base {
    struct thread_base *threads[COUNTS_THREADS];
};

struct counts_base *counts_base_new(void) {
    struct counts_base *base = base_allocate(sizeof *base);
    memset(base, 0, sizeof *base);
    return base;
}

void counts_base_free(struct counts_base *base) {
    for (unsigned i = 0; base && i < COUNTS_THREADS; i++) {
        struct thread_base *thread = base->threads[i];
        for (unsigned j = 0; thread && j < COUNTS_AREAS; j++)
            free(thread->areas[j].values);
        if (thread)
            free(thread->edges.values);
        free(thread);
    }
    free(base);
}

static struct thread_base *thread_of(struct counts_base *base, uint32_t thread) {
    struct thread_base **place = &base->threads[thread];
    if (!*place) {
        *place = base_allocate(sizeof **place);
        memset(*place, 0, sizeof **place);
    }
    return *place;
}

static uint64_t exchange(struct row *row, uint32_t at, uint64_t now) {
    row->values = base_reach(row->values, &row->room, at, sizeof *row->values);
    // Costs of calls that go on are read while they grow, in parts that may be of different ages.
    uint64_t before = row->values[at];
    if (now <= before)
        return 0;
    row->values[at] = now;
    return now - before;
}

uint64_t counts_base_counter(struct counts_base *base, uint32_t thread, uint32_t area, uint32_t id,
                             uint64_t now) {
    return base && now ? exchange(&thread_of(base, thread)->areas[area], id, now) : now;
}

uint64_t counts_base_edge(struct counts_base *base, uint32_t thread, uint32_t edge, unsigned event,
                          uint64_t now) {
    return base ? exchange(&thread_of(base, thread)->edges, edge * (COUNTS_EVENTS + 1) + event, now)
                : now;
}

uint64_t counts_base_total(struct counts_base *base, uint32_t thread, unsigned event,
                           uint64_t more) {
    return base ? thread_of(base, thread)->totals[event] += more : more;
}
