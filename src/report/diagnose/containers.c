#include "report/diagnose/containers.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

#define SMALLEST 64  // bytes; a larger block may be a container that has grown
#define LEAST    1.2 // how much larger the next block is
#define MOST     4.5
#define SAME     2 // innermost frames that a container's blocks share
#define DEAD     65536

void containers_free(struct containers *containers) {
    map_integers_free(&containers->numbers);
    free(containers->items);
    free(containers->latest);
}

static struct container *find(struct containers *containers, uint64_t number) {
    uint32_t entry = map_integers_find(&containers->numbers, number);
    return entry == MAP_NONE ? NULL : &containers->items[entry];
}

// Containers of requests come and go without end.
static void drop_dead(struct containers *containers) {
    size_t kept = 0;
    if (containers->dead < DEAD || containers->dead < containers->count / 2)
        return;
    for (size_t i = 0; i < containers->count; i++)
        if (containers->items[i].is_alive)
            containers->items[kept++] = containers->items[i];
    containers->count = kept;
    containers->dead = 0;
    map_integers_clear(&containers->numbers);
    for (size_t i = 0; i < kept; i++)
        map_integers_add(&containers->numbers, containers->items[i].number, &(bool){false});
}

static struct container *add(struct containers *containers, uint64_t number) {
    bool is_new;
    drop_dead(containers);
    uint32_t entry = map_integers_add(&containers->numbers, number, &is_new);
    if (is_new)
        *vector_push(containers->items, containers->count) = (struct container){0};
    return &containers->items[entry];
}

static void bury(struct containers *containers, struct container *container) {
    containers->dead += container->is_alive;
    container->is_alive = false;
}

// A larger block takes the place of the old one.
static void enlarge(struct containers *containers, const struct heap_block *old,
                    struct container next, struct containers_change *change) {
    const struct container *before = &change->before;
    uint64_t passed = next.work - before->work;
    next.full = old->size;
    next.steps = before->steps + 1;
    next.rate = before->steps && passed && old->size > before->full
                    ? (double)(old->size - before->full) / (double)passed
                    : before->rate;
    next.is_shared = before->is_shared || (before->steps && before->thread != next.thread);
    next.is_alive = true;
    *add(containers, next.number) = next;
    change->now = next;
}

static bool is_same_place(const struct containers *containers, uint32_t left, uint32_t right) {
    if (left == right)
        return true;
    const struct stacks_entry *a = stacks_get(containers->stacks, left);
    const struct stacks_entry *b = stacks_get(containers->stacks, right);
    return a && b && a->count >= SAME && b->count >= SAME &&
           memcmp(a->pcs, b->pcs, SAME * sizeof *a->pcs) == 0 &&
           containers->function(containers->context, left) ==
               containers->function(containers->context, right);
}

static void note_freed(struct containers *containers, const struct heap_event *event, uint64_t work,
                       struct containers_change *change) {
    const struct heap_block *old = &event->before;
    struct container *known = find(containers, old->number);
    if (known) {
        change->before = *known;
        bury(containers, known);
    }
    if (event->thread >= containers->thread_count)
        return;
    struct containers_latest *latest = &containers->latest[event->thread];
    for (size_t i = 0; i < CONTAINER_LATEST; i++) {
        double factor = (double)latest->blocks[i].size / (double)(old->size ? old->size : 1);
        if (latest->blocks[i].number <= old->number || factor < LEAST || factor > MOST ||
            !is_same_place(containers, latest->blocks[i].stack, old->stack))
            continue;
        struct container now = {.number = latest->blocks[i].number,
                                .size = latest->blocks[i].size,
                                .work = work,
                                .stack = latest->blocks[i].stack,
                                .thread = event->thread};
        enlarge(containers, old, now, change);
        latest->blocks[i].number = 0;
        return;
    }
}

static void note_resized(struct containers *containers, const struct heap_event *event,
                         uint64_t work, struct containers_change *change) {
    const struct heap_block *block = event->block;
    struct container *known = find(containers, event->before.number);
    if (known) {
        change->before = *known;
        bury(containers, known);
    }
    if (block->size <= event->before.size || block->size < SMALLEST)
        return;
    struct container now = {.number = block->number,
                            .size = block->size,
                            .work = work,
                            .stack = block->stack,
                            .thread = event->thread};
    enlarge(containers, &event->before, now, change);
}

void containers_note(struct containers *containers, const struct heap_event *event, uint64_t work,
                     struct containers_change *change) {
    *change = (struct containers_change){0};
    if (event->kind == HEAP_ALLOCATED && event->block->size >= SMALLEST) {
        containers->latest = base_reach(containers->latest, &containers->thread_count,
                                        event->thread, sizeof *containers->latest);
        struct containers_latest *latest = &containers->latest[event->thread];
        uint32_t place = latest->next++ % CONTAINER_LATEST;
        latest->blocks[place].number = event->block->number;
        latest->blocks[place].size = event->block->size;
        latest->blocks[place].stack = event->block->stack;
    } else if (event->kind == HEAP_FREED && event->before.size >= SMALLEST / 4) {
        note_freed(containers, event, work, change);
    } else if (event->kind == HEAP_RESIZED) {
        note_resized(containers, event, work, change);
    }
}

uint64_t container_content(const struct container *container, uint64_t work) {
    double more = container->rate * (double)(work - container->work);
    double room = (double)(container->size - container->full);
    return container->full + (uint64_t)(more < room ? more : room);
}
