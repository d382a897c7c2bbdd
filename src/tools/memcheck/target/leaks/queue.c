#include "tools/memcheck/target/leaks/queue.h"

#include "tools/memcheck/target/leaks/search.h"

enum { SLICE = 256 * 1024 };

static void lock(struct leak_queue *queue) {
    while (atomic_flag_test_and_set_explicit(&queue->lock, memory_order_acquire))
        __builtin_ia32_pause();
}

static void unlock(struct leak_queue *queue) {
    atomic_flag_clear_explicit(&queue->lock, memory_order_release);
}

static bool add_slice(struct leak_queue *queue) {
    struct leak_slice *slice = search_map(SLICE);
    if (!slice)
        return false;
    slice->next = queue->slices;
    queue->slices = slice;
    struct leak_chunk *chunks = (struct leak_chunk *)slice;
    for (unsigned i = 1; i < SLICE / sizeof *chunks; i++) {
        chunks[i].next = queue->spare;
        queue->spare = &chunks[i];
    }
    return true;
}

struct leak_chunk *queue_chunk(struct leak_queue *queue) {
    lock(queue);
    struct leak_chunk *chunk = queue->spare || add_slice(queue) ? queue->spare : NULL;
    if (chunk)
        queue->spare = chunk->next;
    unlock(queue);
    if (chunk)
        chunk->count = 0;
    return chunk;
}

void queue_put(struct leak_queue *queue, struct leak_chunk *chunk) {
    chunk->next = NULL;
    lock(queue);
    if (queue->first)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    atomic_fetch_add(&queue->waiting, 1);
    unlock(queue);
}

struct leak_chunk *queue_take(struct leak_queue *queue) {
    if (!atomic_load(&queue->waiting))
        return NULL;
    lock(queue);
    struct leak_chunk *chunk = queue->first;
    if (chunk) {
        queue->first = chunk->next;
        atomic_fetch_sub(&queue->waiting, 1);
    }
    unlock(queue);
    return chunk;
}

void queue_give_back(struct leak_queue *queue, struct leak_chunk *chunk) {
    lock(queue);
    chunk->next = queue->spare;
    queue->spare = chunk;
    unlock(queue);
}

void queue_free(struct leak_queue *queue) {
    for (struct leak_slice *slice = queue->slices, *next; slice; slice = next) {
        next = slice->next;
        search_unmap(slice, SLICE);
    }
    queue->slices = NULL;
}
