// The caches of threads. Each thread has a pointer to its cache among its variables, at the same
// distance from its thread pointer. That distance is not known, so it is searched for: it is the
// one where every thread has a pointer to a cache, or nothing.
#include <stdlib.h>

#include "attach/walk.h"
#include "base/vector.h"

#define VARIABLES_MOST (256ull << 10) // bytes below the thread pointer that are searched

// The size of its chunk; 0: it is none.
static uint64_t read_cache(const struct snapshot *snapshot, uint64_t address,
                           struct cache_record *cache) {
    uint64_t head;
    if (!address || address % CHUNK_ALIGN || !snapshot_word(snapshot, address - 8, &head) ||
        head & IS_MAPPED || !snapshot_read(snapshot, address, cache, sizeof *cache))
        return 0;
    uint64_t size = head & ~CHUNK_FLAGS;
    return size >= CACHE_CHUNK && size <= CACHE_CHUNK_MOST ? size : 0;
}

// Follows a list of blocks; false if it does not have as many as the cache says. `walk` may be
// NULL.
static bool follow_list(const struct snapshot *snapshot, const struct cache_record *cache,
                        unsigned list, struct heap_walk *walk) {
    uint64_t at = cache->lists[list];
    for (unsigned left = cache->counts[list]; left; left--) {
        uint64_t words[2], size = cache_chunk_size(list);
        if (!at || at % CHUNK_ALIGN || !snapshot_read(snapshot, at - 8, words, sizeof words) ||
            (words[0] & ~CHUNK_FLAGS) != size || words[0] & IS_MAPPED)
            return false;
        if (walk)
            *vector_push(walk->known, walk->known_count) =
                (struct known_chunk){at - CHUNK_HEADER, size, KNOWN_CACHED};
        at = glibc_reveal(at, words[1]);
    }
    return at == 0;
}

static bool is_cache(const struct snapshot *snapshot, uint64_t address) {
    struct cache_record cache;
    if (!read_cache(snapshot, address, &cache))
        return false;
    for (unsigned i = 0; i < CACHE_LISTS; i++)
        if ((cache.counts[i] == 0) != (cache.lists[i] == 0))
            return false;
    return true;
}

// How many threads have a cache at this distance; 0 if one has something else there.
static size_t count_caches(const struct snapshot *snapshot, uint64_t distance) {
    size_t count = 0;
    for (size_t i = 0; i < snapshot->threads.count; i++) {
        const struct freeze_thread *thread = &snapshot->threads.threads[i];
        uint64_t value;
        if (!thread->stopped || !thread->thread_pointer)
            continue;
        if (!snapshot_word(snapshot, thread->thread_pointer - distance, &value))
            return 0;
        if (!value)
            continue;
        if (!is_cache(snapshot, value))
            return 0;
        count++;
    }
    return count;
}

// The distances at which this thread has a pointer to a cache are tried.
static void try_thread(const struct snapshot *snapshot, const struct freeze_thread *thread,
                       uint64_t *best, size_t *most) {
    const struct maps_mapping *mapping = snapshot_mapping(snapshot, thread->thread_pointer);
    if (!mapping || !thread->stopped)
        return;
    for (uint64_t distance = 8; distance <= VARIABLES_MOST; distance += 8) {
        uint64_t value, at = thread->thread_pointer - distance;
        if (at < mapping->start || !snapshot_word(snapshot, at, &value))
            break;
        size_t count =
            distance != *best && is_cache(snapshot, value) ? count_caches(snapshot, distance) : 0;
        if (count > *most) {
            *most = count;
            *best = distance;
        }
    }
}

static bool add_cache(struct heap_walk *walk, uint64_t address) {
    struct cache_record cache;
    uint64_t size = read_cache(walk->snapshot, address, &cache);
    if (!size)
        return walk_fail(walk, "a thread's cache cannot be read");
    for (unsigned i = 0; i < CACHE_LISTS; i++)
        if (!follow_list(walk->snapshot, &cache, i, walk))
            return walk_fail(walk, "a list of the cache at 0x%llx is broken",
                             (unsigned long long)address);
    *vector_push(walk->known, walk->known_count) =
        (struct known_chunk){address - CHUNK_HEADER, size, KNOWN_CACHE};
    walk->census->caches++;
    return true;
}

bool walk_caches(struct heap_walk *walk) {
    const struct snapshot *snapshot = walk->snapshot;
    uint64_t distance = 0, value;
    size_t most = 0;
    // One thread may have no cache yet; a second pass with the others finds it then.
    for (size_t i = 0; i < snapshot->threads.count && !most; i++)
        try_thread(snapshot, &snapshot->threads.threads[i], &distance, &most);
    if (!most)
        return walk_fail(walk, "the threads' caches are not found");
    for (size_t i = 0; i < snapshot->threads.count; i++) {
        const struct freeze_thread *thread = &snapshot->threads.threads[i];
        if (thread->stopped && thread->thread_pointer &&
            snapshot_word(snapshot, thread->thread_pointer - distance, &value) && value &&
            !add_cache(walk, value))
            return false;
    }
    return true;
}
