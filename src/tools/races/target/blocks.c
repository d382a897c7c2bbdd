// Heap blocks: a new one is memory that nobody has accessed, and reports say whose it is.
#include <pthread.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/x86.h"
#include "tools/races/target/graph.h"
#include "tools/races/target/races.h"
#include "tools/shared/arguments.h"
#include "tools/shared/stacks.h"

enum {
    BUCKET_BITS = 16,
    LOCKS = 64,
    GRAIN = 16,
    LOOK_BACK = 1 << 16, // bytes before an address at which small blocks may begin
    LARGE_MOST = 4096,
};

struct entry {
    struct races_block block;
    struct entry *next;
};

static struct entry *buckets[1 << BUCKET_BITS];
static pthread_mutex_t locks[LOCKS];
// Blocks of more than LOOK_BACK bytes, also in a list of their own.
static struct races_block large[LARGE_MOST];
static unsigned large_count;
static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t bucket_of(uint64_t address) {
    return hash_bucket(address, BUCKET_BITS);
}

static void add_large(const struct races_block *block) {
    pthread_mutex_lock(&large_lock);
    if (large_count < LARGE_MOST)
        large[large_count++] = *block;
    pthread_mutex_unlock(&large_lock);
}

static void remove_large(uint64_t start) {
    pthread_mutex_lock(&large_lock);
    for (unsigned i = 0; i < large_count; i++)
        if (large[i].start == start) {
            large[i] = large[--large_count];
            break;
        }
    pthread_mutex_unlock(&large_lock);
}

static void remove_block(uint64_t start) {
    uint64_t bucket = bucket_of(start);
    pthread_mutex_t *lock = &locks[bucket % LOCKS];
    struct entry *found = NULL;
    pthread_mutex_lock(lock);
    for (struct entry **at = &buckets[bucket]; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->block.start == start) {
            found = *at;
            *at = found->next;
            break;
        }
    pthread_mutex_unlock(lock);
    if (found && found->block.size > LOOK_BACK)
        remove_large(start);
    free(found);
}

static void add_block(uint64_t start, uint64_t size) {
    struct entry *entry = malloc(sizeof *entry);
    if (!start || !entry) {
        free(entry);
        return;
    }
    if (races_has_threads && tool_has_shadow(start, size))
        tool_shadow_clear(start & ~3ul, (start + size + GRAIN - 1) & ~(GRAIN - 1ul));
    remove_block(start); // freed in a way that was not seen
    graph_memory_is_new(start, size);
    entry->block = (struct races_block){start, size, stack_here(), races_thread()->number};
    uint64_t bucket = bucket_of(start);
    pthread_mutex_lock(&locks[bucket % LOCKS]);
    entry->next = buckets[bucket];
    buckets[bucket] = entry;
    pthread_mutex_unlock(&locks[bucket % LOCKS]);
    if (size > LOOK_BACK)
        add_large(&entry->block);
}

static bool find_at(uint64_t start, struct races_block *block) {
    uint64_t bucket = bucket_of(start);
    bool found = false;
    pthread_mutex_lock(&locks[bucket % LOCKS]);
    for (const struct entry *at = buckets[bucket]; at && !found; at = at->next)
        if (at->block.start == start) {
            *block = at->block;
            found = true;
        }
    pthread_mutex_unlock(&locks[bucket % LOCKS]);
    return found;
}

bool races_block_find(uint64_t address, struct races_block *block) {
    bool found = false;
    pthread_mutex_lock(&large_lock);
    for (unsigned i = 0; i < large_count && !found; i++)
        if (address - large[i].start < large[i].size) {
            *block = large[i];
            found = true;
        }
    pthread_mutex_unlock(&large_lock);
    uint64_t last = address & ~(GRAIN - 1ul);
    for (uint64_t at = 0; at <= LOOK_BACK && at <= last && !found; at += GRAIN)
        if (find_at(last - at, block)) {
            found = address - block->start < block->size;
            break;
        }
    return found;
}

void races_block_forked(void) {
    pthread_mutex_init(&large_lock, NULL);
    for (unsigned i = 0; i < LOCKS; i++)
        pthread_mutex_init(&locks[i], NULL);
}

// ---- hooks -------------------------------------------------------------------------------------

// The innermost call counts: the C library's functions call each other.
static void made(const struct races_return *call, uint64_t result) {
    add_block(result, call->words[0]);
}

static void made_at(const struct races_return *call, uint64_t result) {
    uint64_t start = 0;
    if ((uint32_t)result == 0 && tool_read(&start, call->words[1], sizeof start) == 0)
        add_block(start, call->words[0]);
}

static void push(uint64_t size) {
    races_push_return(made, size, 0, 0);
    races_returns_allocation();
}

void races_block_malloc(void) {
    push(argument(0));
}

void races_block_calloc(void) {
    push(argument(0) * argument(1));
}

// Others may get the memory before the function returns.
void races_block_realloc(void) {
    races_block_free();
    push(argument(1));
}

void races_block_reallocarray(void) {
    races_block_free();
    push(argument(1) * argument(2));
}

void races_block_free(void) {
    if (argument(0))
        remove_block(argument(0));
}

void races_block_memalign(void) {
    push(argument(1));
}

void races_block_posix_memalign(void) {
    races_push_return(made_at, argument(2), argument(0), 0);
    races_returns_allocation();
}

void races_block_valloc(void) {
    push(argument(0));
}
