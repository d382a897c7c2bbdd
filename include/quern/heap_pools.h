/* Two allocators: an arena, whose objects go all at once, and a pool of objects of one size.
 * Included by heap.h; both get their memory from mmap, are for one thread at a time, and keep
 * statistics.
 *
 * Under memcheck, objects have red zones around them, and what is not given out cannot be accessed:
 * overruns, use after release, double releases and lost objects are reported as those of malloc
 * are. Under the recorder, each object is a block with a stack of its own. Under dhat, objects come
 * from malloc, so that accesses to them are counted.
 */
#ifndef QUERN_HEAP_POOLS_H
#define QUERN_HEAP_POOLS_H

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS 0x20
#endif

#define QUERN_HEAP_ALIGNMENT ((size_t)16)
#define QUERN_HEAP_PAGE      ((size_t)4096)

QUERN_HEAP_API size_t quern_heap_round_up(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

QUERN_HEAP_API void *quern_heap_map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Bytes to leave unused between objects. */
QUERN_HEAP_API size_t quern_heap_red_zone(void) {
    return quern_heap_listener() & QUERN_HEAP_CHECKER ? QUERN_HEAP_ALIGNMENT : 0;
}

/* An object of an arena or pool is given out, or given back. */
QUERN_HEAP_API void quern_heap_object_taken(void *owner, void *object, size_t size) {
    int listener = quern_heap_listener();
    if (listener & QUERN_HEAP_CHECKER)
        QUERN_POOL_ALLOCATE(owner, object, size);
    else if (listener)
        quern_heap_tell(QUERN_HEAP_CODE_ALLOCATED, (unsigned long)object, size, 0);
}
QUERN_HEAP_API void quern_heap_object_given(void *owner, void *object) {
    int listener = quern_heap_listener();
    if (listener & QUERN_HEAP_CHECKER)
        QUERN_POOL_FREE(owner, object);
    else if (listener & QUERN_HEAP_COUNTER)
        free(object);
    else if (listener)
        quern_heap_tell(QUERN_HEAP_CODE_FREED, (unsigned long)object, 0, 0);
}

/* A list of pointers in memory of its own, so that it is nobody's heap. */
struct quern_heap_list {
    void **items;
    size_t count, room;
};

QUERN_HEAP_API int quern_heap_list_add(struct quern_heap_list *list, void *item) {
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : QUERN_HEAP_PAGE / sizeof(void *);
        void **items = (void **)quern_heap_map(room * sizeof *items);
        if (!items)
            return 0;
        if (list->count) {
            memcpy(items, list->items, list->count * sizeof *items);
            munmap(list->items, list->room * sizeof *items);
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
    return 1;
}

QUERN_HEAP_API void quern_heap_list_free(struct quern_heap_list *list) {
    if (list->room)
        munmap(list->items, list->room * sizeof *list->items);
    memset(list, 0, sizeof *list);
}

/* ---- arenas ---- */

struct quern_arena_stats {
    size_t taken, taken_bytes; /* objects ever */
    size_t hits;               /* of those, without a new chunk */
    size_t live, live_bytes;   /* since the last reset */
    size_t peak, peak_bytes;   /* most of them, each for itself */
    size_t resets;
    size_t chunks, reserved_bytes; /* memory held */
};

struct quern_arena_chunk {
    struct quern_arena_chunk *next;
    size_t size;
};

struct quern_arena {
    const char *name;
    size_t chunk_size;
    struct quern_arena_chunk *chunks, *current; /* those behind `current` are not in use */
    char *at, *end;                             /* what is left of it */
    struct quern_heap_list objects;             /* for the recorder only */
    struct quern_arena_stats stats;
};

QUERN_HEAP_API void quern_arena_begin(struct quern_arena *arena, const char *name,
                                      size_t chunk_size) {
    memset(arena, 0, sizeof *arena);
    arena->name = name;
    arena->chunk_size = quern_heap_round_up(
        chunk_size < QUERN_HEAP_PAGE ? QUERN_HEAP_PAGE : chunk_size, QUERN_HEAP_PAGE);
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_POOL_CREATE(arena, QUERN_HEAP_ALIGNMENT, 0, 0);
}

QUERN_HEAP_API void quern_arena_use(struct quern_arena *arena, struct quern_arena_chunk *chunk) {
    char *start = (char *)chunk + quern_heap_round_up(sizeof *chunk, QUERN_HEAP_ALIGNMENT);
    arena->current = chunk;
    arena->at = start;
    arena->end = (char *)chunk + chunk->size;
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_MAKE_NOACCESS(start, (size_t)(arena->end - start));
}

/* Makes a chunk with so much room the current one. 0: there is no memory. */
QUERN_HEAP_API int quern_arena_next(struct quern_arena *arena, size_t need) {
    struct quern_arena_chunk *chunk = arena->current ? arena->current->next : arena->chunks;
    size_t head = quern_heap_round_up(sizeof *chunk, QUERN_HEAP_ALIGNMENT), size;
    while (chunk && chunk->size - head < need)
        chunk = chunk->next;
    if (chunk) {
        quern_arena_use(arena, chunk);
        return 1;
    }
    size = arena->chunk_size;
    if (need > size - head) {
        if (need > (size_t)-1 / 2)
            return 0;
        size = quern_heap_round_up(need + head, QUERN_HEAP_PAGE);
    }
    chunk = (struct quern_arena_chunk *)quern_heap_map(size);
    if (!chunk)
        return 0;
    chunk->size = size;
    if (arena->current) {
        chunk->next = arena->current->next;
        arena->current->next = chunk;
    } else {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    arena->stats.chunks++;
    arena->stats.reserved_bytes += size;
    quern_arena_use(arena, chunk);
    return 2;
}

/* Memory for an object, aligned to 16 bytes, its content anything; NULL: there is none. */
QUERN_HEAP_API void *quern_arena_take(struct quern_arena *arena, size_t size) {
    struct quern_arena_stats *stats = &arena->stats;
    size_t red = quern_heap_red_zone();
    size_t need = quern_heap_round_up(size ? size : 1, QUERN_HEAP_ALIGNMENT) + 2 * red;
    int found = 1;
    char *object;
    if (size > (size_t)-1 / 2)
        return NULL;
    if (quern_heap_listener() & QUERN_HEAP_COUNTER) {
        object = (char *)malloc(size);
        found = object != NULL;
    } else {
        if (need > (size_t)(arena->end - arena->at))
            found = quern_arena_next(arena, need);
        object = found ? arena->at + red : NULL;
        arena->at += found ? need : 0;
    }
    if (!found)
        return NULL;
    stats->hits += found == 1;
    stats->taken++;
    stats->taken_bytes += size;
    stats->live_bytes += size;
    if (++stats->live > stats->peak)
        stats->peak = stats->live;
    if (stats->live_bytes > stats->peak_bytes)
        stats->peak_bytes = stats->live_bytes;
    quern_heap_object_taken(arena, object, size);
    if (quern_heap_listener() & (QUERN_HEAP_RECORDER | QUERN_HEAP_ENGINE | QUERN_HEAP_COUNTER))
        quern_heap_list_add(&arena->objects, object);
    return object;
}

/* All objects are gone; the memory stays, for the next ones. */
QUERN_HEAP_API void quern_arena_reset(struct quern_arena *arena) {
    size_t i;
    for (i = 0; i < arena->objects.count; i++)
        quern_heap_object_given(arena, arena->objects.items[i]);
    arena->objects.count = 0;
    if (quern_heap_listener() & QUERN_HEAP_CHECKER) {
        QUERN_POOL_DESTROY(arena);
        QUERN_POOL_CREATE(arena, QUERN_HEAP_ALIGNMENT, 0, 0);
    }
    arena->current = NULL;
    arena->at = arena->end = NULL;
    arena->stats.live = arena->stats.live_bytes = 0;
    arena->stats.resets++;
}

/* The memory is given back. Statistics can still be read. */
QUERN_HEAP_API void quern_arena_end(struct quern_arena *arena) {
    struct quern_arena_chunk *chunk = arena->chunks, *next;
    quern_arena_reset(arena);
    arena->stats.resets--;
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_POOL_DESTROY(arena);
    for (; chunk; chunk = next) {
        next = chunk->next;
        munmap(chunk, chunk->size);
    }
    quern_heap_list_free(&arena->objects);
    arena->chunks = NULL;
    arena->stats.chunks = arena->stats.reserved_bytes = 0;
}

/* The share of objects that needed no memory from the system. */
QUERN_HEAP_API double quern_arena_hit_ratio(const struct quern_arena *arena) {
    return arena->stats.taken ? (double)arena->stats.hits / (double)arena->stats.taken : 0;
}

/* ---- pools ---- */

struct quern_pool_stats {
    size_t taken;                  /* objects ever */
    size_t hits;                   /* of those, objects that had been given back before */
    size_t live, peak;             /* objects that are out */
    size_t refused;                /* given back although they were not out */
    size_t chunks, reserved_bytes; /* memory held */
};

struct quern_pool_chunk {
    struct quern_pool_chunk *next;
    size_t size;
    size_t count, fresh; /* slots; those used so far */
    char *slots;
    unsigned char *is_out; /* of each slot */
};

struct quern_pool {
    const char *name;
    size_t object_size, slot_size;
    size_t next_count;               /* slots of the next chunk */
    struct quern_pool_chunk *chunks; /* the latest first */
    struct quern_heap_list spare;    /* slots that were given back */
    struct quern_pool_stats stats;
};

/* For objects of this size; the first chunk has room for so many, each further one for twice as
 * many as the one before. */
QUERN_HEAP_API void quern_pool_begin(struct quern_pool *pool, const char *name, size_t object_size,
                                     size_t count) {
    size_t red = quern_heap_red_zone();
    memset(pool, 0, sizeof *pool);
    pool->name = name;
    pool->object_size = object_size ? object_size : 1;
    pool->slot_size = quern_heap_round_up(pool->object_size, QUERN_HEAP_ALIGNMENT) + 2 * red;
    pool->next_count = count ? count : 1;
    if (red)
        QUERN_POOL_CREATE(pool, QUERN_HEAP_ALIGNMENT, 0, 0);
}

QUERN_HEAP_API int quern_pool_grow(struct quern_pool *pool) {
    size_t count = pool->next_count;
    size_t head =
        quern_heap_round_up(sizeof(struct quern_pool_chunk) + count, QUERN_HEAP_ALIGNMENT);
    size_t size;
    struct quern_pool_chunk *chunk;
    if (count > ((size_t)-1 / 4) / pool->slot_size)
        return 0;
    size = quern_heap_round_up(head + count * pool->slot_size, QUERN_HEAP_PAGE);
    chunk = (struct quern_pool_chunk *)quern_heap_map(size);
    if (!chunk)
        return 0;
    chunk->next = pool->chunks;
    chunk->size = size;
    chunk->count = count;
    chunk->fresh = 0;
    chunk->is_out = (unsigned char *)(chunk + 1);
    chunk->slots = (char *)chunk + head;
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_MAKE_NOACCESS(chunk->slots, size - head);
    pool->chunks = chunk;
    pool->next_count = 2 * count;
    pool->stats.chunks++;
    pool->stats.reserved_bytes += size;
    return 1;
}

/* The chunk that the object is of, and its slot; NULL: none. */
QUERN_HEAP_API struct quern_pool_chunk *quern_pool_find(struct quern_pool *pool, void *object,
                                                        size_t *slot) {
    struct quern_pool_chunk *chunk;
    char *at = (char *)object - quern_heap_red_zone();
    for (chunk = pool->chunks; chunk; chunk = chunk->next) {
        if (at < chunk->slots || at >= chunk->slots + chunk->fresh * pool->slot_size)
            continue;
        *slot = (size_t)(at - chunk->slots) / pool->slot_size;
        return (size_t)(at - chunk->slots) % pool->slot_size == 0 ? chunk : NULL;
    }
    return NULL;
}

/* An object, aligned to 16 bytes, its content anything; NULL: there is no memory. */
QUERN_HEAP_API void *quern_pool_take(struct quern_pool *pool) {
    struct quern_pool_stats *stats = &pool->stats;
    struct quern_pool_chunk *chunk = pool->chunks;
    size_t slot = 0;
    char *object;
    if (quern_heap_listener() & QUERN_HEAP_COUNTER) {
        object = (char *)malloc(pool->object_size);
        if (!object)
            return NULL;
    } else if (pool->spare.count) {
        object = (char *)pool->spare.items[--pool->spare.count];
        pool->spare.items[pool->spare.count] = NULL; /* or it would never be lost */
        chunk = quern_pool_find(pool, object, &slot);
    } else {
        if ((!chunk || chunk->fresh == chunk->count) && !quern_pool_grow(pool))
            return NULL;
        chunk = pool->chunks;
        slot = chunk->fresh++;
        object = chunk->slots + slot * pool->slot_size + quern_heap_red_zone();
    }
    if (chunk)
        chunk->is_out[slot] = 1;
    stats->taken++;
    stats->hits += stats->live < stats->peak; /* as many slots as at the peak have been used */
    if (++stats->live > stats->peak)
        stats->peak = stats->live;
    quern_heap_object_taken(pool, object, pool->object_size);
    return object;
}

/* 1; or 0 if the object is not out: nothing has happened then but that it is counted. */
QUERN_HEAP_API int quern_pool_give(struct quern_pool *pool, void *object) {
    size_t slot = 0;
    struct quern_pool_chunk *chunk = object ? quern_pool_find(pool, object, &slot) : NULL;
    int is_out = chunk && chunk->is_out[slot];
    if (object && quern_heap_listener() & QUERN_HEAP_COUNTER) {
        free(object);
        pool->stats.live--;
        return 1;
    }
    if (!is_out) {
        pool->stats.refused += object != NULL;
        if (object && quern_heap_listener() & QUERN_HEAP_CHECKER)
            quern_heap_object_given(pool, object); /* which is reported */
        return 0;
    }
    quern_heap_object_given(pool, object);
    chunk->is_out[slot] = 0;
    pool->stats.live--;
    /* Without memory for the list the slot is not used again. */
    quern_heap_list_add(&pool->spare, object);
    return 1;
}

/* The memory is given back, with the objects that are still out. Statistics can still be read. */
QUERN_HEAP_API void quern_pool_end(struct quern_pool *pool) {
    struct quern_pool_chunk *chunk = pool->chunks, *next;
    size_t i;
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_POOL_DESTROY(pool);
    for (; chunk; chunk = next) {
        next = chunk->next;
        for (i = 0; i < chunk->fresh; i++)
            if (chunk->is_out[i] && !(quern_heap_listener() & QUERN_HEAP_CHECKER))
                quern_heap_object_given(pool, chunk->slots + i * pool->slot_size);
        munmap(chunk, chunk->size);
    }
    quern_heap_list_free(&pool->spare);
    pool->chunks = NULL;
    pool->stats.live = pool->stats.chunks = pool->stats.reserved_bytes = 0;
}

/* The share of objects that had been given back before. */
QUERN_HEAP_API double quern_pool_hit_ratio(const struct quern_pool *pool) {
    return pool->stats.taken ? (double)pool->stats.hits / (double)pool->stats.taken : 0;
}

#endif
