#include "tools/memcheck/target/heap/pools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/leaks/search.h"
#include "tools/memcheck/target/heap/sites.h"
#include "tools/shared/stacks.h"

// ---- a table of things with an address, by that address ----------------------------------------

struct node {
    struct node *next;
    uint64_t key;
};
struct table {
    struct node **buckets;
    size_t count, room; // room: a power of two, or 0
};

static size_t bucket_of(const struct table *table, uint64_t key) {
    return (key * HASH_FACTOR >> 32) & (table->room - 1);
}

static struct node **table_place(const struct table *table, uint64_t key) {
    if (!table->room)
        return NULL;
    struct node **place = &table->buckets[bucket_of(table, key)];
    while (*place && (*place)->key != key)
        place = &(*place)->next;
    return *place ? place : NULL;
}

static void table_grow(struct table *table) {
    struct table larger = {.room = table->room ? 2 * table->room : 16, .count = table->count};
    larger.buckets = calloc(larger.room, sizeof *larger.buckets);
    if (!larger.buckets)
        abort();
    for (size_t i = 0; i < table->room; i++) {
        for (struct node *node = table->buckets[i], *next; node; node = next) {
            next = node->next;
            struct node **bucket = &larger.buckets[bucket_of(&larger, node->key)];
            node->next = *bucket;
            *bucket = node;
        }
    }
    free(table->buckets);
    *table = larger;
}

static void table_add(struct table *table, struct node *node) {
    if (table->count == table->room)
        table_grow(table);
    struct node **bucket = &table->buckets[bucket_of(table, node->key)];
    node->next = *bucket;
    *bucket = node;
    table->count++;
}

// The node, no longer in the table; NULL: none.
static struct node *table_take(struct table *table, uint64_t key) {
    struct node **place = table_place(table, key);
    if (!place)
        return NULL;
    struct node *node = *place;
    *place = node->next;
    table->count--;
    return node;
}

// ---- pools -------------------------------------------------------------------------------------

struct chunk {
    struct node node; // key: its start
    size_t size;
    uint32_t made_at;
};
struct pool {
    struct node node; // key: its anchor
    size_t red_zone;
    bool zeroed;
    unsigned flags;
    struct table chunks;
};

static struct table pools;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void pools_forked(void) {
    pthread_mutex_init(&lock, NULL);
}

// With the lock held; NULL: none.
static struct pool *pool_at(uint64_t anchor) {
    struct node **place = table_place(&pools, anchor);
    return place ? (struct pool *)*place : NULL;
}

static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

// What is carved from a metapool's chunk is described; the chunk itself is not once it has ended.
static void end_chunk(const struct pool *pool, const struct chunk *chunk) {
    if (sites_wanted == SITES_FULL)
        sites_freed(chunk->made_at, heap_freeing_stack(), chunk->size);
    shadow_make_noaccess(chunk->node.key - pool->red_zone, chunk->size + 2 * pool->red_zone);
    if (!(pool->flags & POOL_META))
        heap_chunk_freed(chunk->node.key, chunk->size, pool->red_zone, chunk->made_at);
}

static void resize_chunk(struct chunk *chunk, size_t size) {
    if (sites_wanted == SITES_FULL)
        sites_resized(chunk->made_at, chunk->size, size);
    chunk->size = size;
}

static void end_all_chunks(struct pool *pool) {
    for (size_t i = 0; i < pool->chunks.room; i++) {
        for (struct node *node = pool->chunks.buckets[i], *next; node; node = next) {
            next = node->next;
            end_chunk(pool, (struct chunk *)node);
            free(node);
        }
    }
    free(pool->chunks.buckets);
    pool->chunks = (struct table){0};
}

void pools_create(uint64_t anchor, size_t red_zone, bool zeroed, unsigned flags) {
    struct pool *pool = allocate(sizeof *pool);
    pool->node.key = anchor;
    pool->red_zone = red_zone;
    pool->zeroed = zeroed;
    pool->flags = flags;
    pthread_mutex_lock(&lock);
    struct pool *old = (struct pool *)table_take(&pools, anchor);
    table_add(&pools, &pool->node);
    if (old)
        end_all_chunks(old);
    pthread_mutex_unlock(&lock);
    free(old);
}

void pools_destroy(uint64_t anchor) {
    pthread_mutex_lock(&lock);
    struct pool *pool = (struct pool *)table_take(&pools, anchor);
    if (pool)
        end_all_chunks(pool);
    pthread_mutex_unlock(&lock);
    if (!pool)
        findings_add_pool(anchor);
    free(pool);
}

void pools_allocate(uint64_t anchor, uint64_t start, size_t size) {
    struct chunk *chunk = allocate(sizeof *chunk);
    uint32_t made_at = heap_making_stack();
    *chunk = (struct chunk){.node.key = start, .size = size, .made_at = made_at};
    bool zeroed = false;
    size_t red_zone = 0;
    pthread_mutex_lock(&lock);
    struct pool *pool = pool_at(anchor);
    if (pool) {
        free(table_take(&pool->chunks, start));
        table_add(&pool->chunks, &chunk->node);
        zeroed = pool->zeroed;
        red_zone = pool->red_zone;
    }
    pthread_mutex_unlock(&lock);
    if (!pool) {
        free(chunk);
        findings_add_pool(anchor);
        return;
    }
    heap_chunk_made(start, size);
    if (sites_wanted == SITES_FULL)
        sites_made(made_at, size);
    // The target need not have closed the pool's memory.
    shadow_make_noaccess(start - red_zone, red_zone);
    shadow_make_noaccess(start + size, red_zone);
    if (zeroed)
        shadow_make_defined(start, size);
    else
        shadow_make_undefined(start, size);
}

// Blocks that were declared inside a chunk end with it.
static void undeclare_inside(uint64_t start, uint64_t end) {
    struct heap_block blocks[64];
    size_t found;
    do {
        tool_stop_threads();
        found = heap_list_live(start, blocks, sizeof blocks / sizeof *blocks);
        tool_resume_threads();
        for (size_t i = 0; i < found; i++) {
            if (blocks[i].start >= end)
                return;
            if (blocks[i].maker == HEAP_CLIENT)
                heap_undeclare_with_chunk(blocks[i].start);
            start = blocks[i].start + 1;
        }
    } while (found);
}

void pools_free(uint64_t anchor, uint64_t start) {
    struct chunk *chunk = NULL;
    bool auto_free = false;
    pthread_mutex_lock(&lock);
    struct pool *pool = pool_at(anchor);
    if (pool) {
        chunk = (struct chunk *)table_take(&pool->chunks, start);
        auto_free = pool->flags & POOL_AUTO_FREE;
    }
    if (chunk)
        end_chunk(pool, chunk);
    pthread_mutex_unlock(&lock);
    if (!pool) {
        findings_add_pool(anchor);
        return;
    }
    if (!chunk) {
        findings_add_free(start, "free");
        return;
    }
    if (auto_free)
        undeclare_inside(start, start + chunk->size);
    free(chunk);
}

// What is left of a chunk; false: nothing.
static bool trim_chunk(const struct pool *pool, struct chunk *chunk, uint64_t start, uint64_t end) {
    uint64_t first = chunk->node.key, last = first + chunk->size;
    if (first >= start && last <= end)
        return true;
    if (last <= start || first >= end) {
        end_chunk(pool, chunk);
        return false;
    }
    if (first < start)
        shadow_make_noaccess(first, start - first);
    if (last > end)
        shadow_make_noaccess(end, last - end);
    chunk->node.key = first < start ? start : first;
    resize_chunk(chunk, (last > end ? end : last) - chunk->node.key);
    return true;
}

void pools_trim(uint64_t anchor, uint64_t start, size_t size) {
    pthread_mutex_lock(&lock);
    struct pool *pool = pool_at(anchor);
    if (pool) {
        struct table left = {0};
        for (size_t i = 0; i < pool->chunks.room; i++) {
            for (struct node *node = pool->chunks.buckets[i], *next; node; node = next) {
                next = node->next;
                if (trim_chunk(pool, (struct chunk *)node, start, start + size))
                    table_add(&left, node);
                else
                    free(node);
            }
        }
        free(pool->chunks.buckets);
        pool->chunks = left;
    }
    pthread_mutex_unlock(&lock);
    if (!pool)
        findings_add_pool(anchor);
}

void pools_move(uint64_t anchor, uint64_t to) {
    pthread_mutex_lock(&lock);
    struct pool *pool = (struct pool *)table_take(&pools, anchor);
    if (pool) {
        pool->node.key = to;
        table_add(&pools, &pool->node);
    }
    pthread_mutex_unlock(&lock);
    if (!pool)
        findings_add_pool(anchor);
}

void pools_change(uint64_t anchor, uint64_t old_start, uint64_t start, size_t size) {
    struct chunk *chunk = NULL;
    pthread_mutex_lock(&lock);
    struct pool *pool = pool_at(anchor);
    if (pool)
        chunk = (struct chunk *)table_take(&pool->chunks, old_start);
    if (chunk) {
        chunk->node.key = start;
        resize_chunk(chunk, size);
        table_add(&pool->chunks, &chunk->node);
    }
    pthread_mutex_unlock(&lock);
    if (!pool)
        findings_add_pool(anchor);
    else if (!chunk)
        findings_add_free(old_start, "free");
}

bool pools_exists(uint64_t anchor) {
    pthread_mutex_lock(&lock);
    bool found = pool_at(anchor) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

// ---- all chunks --------------------------------------------------------------------------------

static bool each_chunk(bool (*function)(const struct pool *, const struct chunk *, void *),
                       void *argument) {
    for (size_t i = 0; i < pools.room; i++) {
        for (struct node *at = pools.buckets[i]; at; at = at->next) {
            const struct pool *pool = (struct pool *)at;
            for (size_t j = 0; j < pool->chunks.room; j++)
                for (struct node *node = pool->chunks.buckets[j]; node; node = node->next)
                    if (function(pool, (struct chunk *)node, argument))
                        return true;
        }
    }
    return false;
}

struct wanted_chunk {
    uint64_t address;
    bool of_metapool;
    struct pool_chunk *found;
};

static bool contains(const struct pool *pool, const struct chunk *chunk, void *argument) {
    const struct wanted_chunk *wanted = argument;
    uint64_t first = chunk->node.key - pool->red_zone;
    if (!(pool->flags & POOL_META) == wanted->of_metapool ||
        wanted->address - first >= chunk->size + 2 * pool->red_zone)
        return false;
    *wanted->found = (struct pool_chunk){chunk->node.key, chunk->size, chunk->made_at};
    return true;
}

bool pools_find(uint64_t address, bool of_metapool, struct pool_chunk *found) {
    struct wanted_chunk wanted = {address, of_metapool, found};
    pthread_mutex_lock(&lock);
    bool any = each_chunk(contains, &wanted);
    pthread_mutex_unlock(&lock);
    return any;
}

static bool count(const struct pool *pool, const struct chunk *chunk, void *argument) {
    ++*(size_t *)argument;
    return false;
}

size_t pools_chunk_count(void) {
    size_t number = 0;
    each_chunk(count, &number);
    return number;
}

static bool add(const struct pool *pool, const struct chunk *chunk, void *argument) {
    return !blocks_add(argument, chunk->node.key, chunk->size, chunk->made_at);
}

void pools_add_chunks(struct leak_blocks *blocks) {
    each_chunk(add, blocks);
}
