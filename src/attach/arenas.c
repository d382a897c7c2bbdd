// Arenas, chunk by chunk. The chunks of an arena follow each other without gaps, from its start to
// its top, and the lists of free chunks must hold exactly the free chunks that the walk meets.
#include <stdlib.h>

#include "attach/walk.h"
#include "base/vector.h"

#define ARENAS_MOST 100000u
#define LIST_MOST   (1ull << 32) // chunks in a list

struct arena_walk {
    struct heap_walk *walk;
    struct census_arena *arena;
    uint64_t address;
    struct arena_record record;
    struct census_sum listed; // in bins
};

static uint64_t align_up(uint64_t value, uint64_t to) {
    return (value + to - 1) & -to;
}

// ---- lists -------------------------------------------------------------------------------------

static bool follow_fast(struct arena_walk *self, unsigned number) {
    struct heap_walk *walk = self->walk;
    uint64_t at = self->record.fast[number], size = CHUNK_LEAST + number * CHUNK_ALIGN;
    for (uint64_t count = 0; at; count++) {
        struct chunk chunk;
        uint64_t next;
        if (count == LIST_MOST || at % CHUNK_ALIGN ||
            !snapshot_read(walk->snapshot, at, &chunk, sizeof chunk) ||
            chunk_size(&chunk) != size || !snapshot_word(walk->snapshot, at + CHUNK_HEADER, &next))
            return walk_fail(walk, "a list of small free blocks is broken");
        *vector_push(walk->known, walk->known_count) = (struct known_chunk){at, size, KNOWN_FAST};
        at = glibc_reveal(at + CHUNK_HEADER, next);
    }
    return true;
}

static bool follow_bin(struct arena_walk *self, unsigned number) {
    struct heap_walk *walk = self->walk;
    uint64_t bin = arena_bin(self->address, number), before = bin;
    uint64_t at = self->record.bins[2 * number];
    for (uint64_t count = 0; at != bin; count++) {
        uint64_t words[4];
        if (count == LIST_MOST || at % CHUNK_ALIGN ||
            !snapshot_read(walk->snapshot, at, words, sizeof words) || words[3] != before)
            return walk_fail(walk, "a list of free blocks is broken");
        self->listed.blocks++;
        self->listed.bytes += words[1] & ~CHUNK_FLAGS;
        before = at;
        at = words[2];
    }
    return self->record.bins[2 * number + 1] == before ||
           walk_fail(walk, "a list of free blocks is broken");
}

// ---- chunks ------------------------------------------------------------------------------------

static int by_address(const void *a, const void *b) {
    const struct known_chunk *one = a, *other = b;
    return (one->address > other->address) - (one->address < other->address);
}

static const struct known_chunk *find_known(struct heap_walk *walk, uint64_t address) {
    struct known_chunk key = {.address = address};
    return walk->known_count ? bsearch(&key, walk->known, walk->known_count, sizeof key, by_address)
                             : NULL;
}

static void add_to(struct census_sum *sum, uint64_t bytes) {
    sum->blocks++;
    sum->bytes += bytes;
}

static void count_resident(struct arena_walk *self, uint64_t at, uint64_t size, uint64_t *sum) {
    *sum += snapshot_resident(self->walk->snapshot, at, at + size);
}

// A chunk that is free, and in a bin.
static void take_binned(struct arena_walk *self, uint64_t at, uint64_t size) {
    struct census_arena *arena = self->arena;
    add_to(&arena->binned, size);
    if (size > arena->largest_free)
        arena->largest_free = size;
    count_resident(self, at, size, &arena->resident_free);
}

// A chunk that is marked as in use. False: it cannot be one.
static bool take_used(struct arena_walk *self, uint64_t at, const struct chunk *chunk) {
    struct census_arena *arena = self->arena;
    struct heap_walk *walk = self->walk;
    uint64_t size = chunk_size(chunk);
    const struct known_chunk *known = find_known(walk, at);
    if (known) {
        if (known->size != size)
            return walk_fail(walk, "a free block has another size than its list");
        walk->known_found++;
        if (known->kind == KNOWN_CACHE) {
            arena->own += size;
            return true;
        }
        add_to(known->kind == KNOWN_CACHED ? &arena->cached : &arena->fast, size);
        count_resident(self, at, size, &arena->resident_free);
        return true;
    }
    if (!(chunk->head & NOT_MAIN) != arena->is_main)
        return walk_fail(walk, "a block at 0x%llx is marked as another arena's",
                         (unsigned long long)at + CHUNK_HEADER);
    add_to(&arena->in_use, size - 8);
    arena->own += 8;
    count_resident(self, at, size, &arena->resident_in_use);
    walk_add_block(walk, at + CHUNK_HEADER, size - 8);
    return true;
}

// Whether a chunk may begin here, in a segment that ends at `end`.
static bool is_chunk(const struct chunk *chunk, uint64_t at, uint64_t end) {
    uint64_t size = chunk_size(chunk);
    return size >= CHUNK_LEAST && size % CHUNK_ALIGN == 0 && size <= end - at &&
           !(chunk->head & IS_MAPPED);
}

// Walks from a chunk until `top`, or until a fence post. Counts nothing. True: it arrives there.
static bool leads_to_end(const struct heap_walk *walk, uint64_t at, uint64_t top) {
    struct chunk chunk;
    for (bool is_first = true; at < top; is_first = false) {
        if (!snapshot_read(walk->snapshot, at, &chunk, sizeof chunk))
            return false;
        if (!is_first && chunk_size(&chunk) == CHUNK_FENCE)
            return true;
        if (!is_chunk(&chunk, at, top) || (is_first && !(chunk.head & PREV_IN_USE)))
            return false;
        at += chunk_size(&chunk);
    }
    return at == top;
}

// Behind two fence posts in the main arena lies memory that the program took from the break itself;
// where malloc goes on is searched for.
static uint64_t skip_foreign(struct arena_walk *self, uint64_t at, uint64_t top) {
    uint64_t from = at;
    while (at < top && !leads_to_end(self->walk, at, top))
        at += CHUNK_ALIGN;
    self->arena->own += at - from;
    return at;
}

// Walks [at, end): to the top of the arena if it lies there, else to the mark at the end.
static bool walk_segment(struct arena_walk *self, uint64_t at, uint64_t end) {
    struct heap_walk *walk = self->walk;
    uint64_t top = self->record.top;
    bool has_top = top >= at && top < end;
    unsigned fences = 0;
    while (at < end && at != top) {
        struct chunk chunk, next;
        if (!snapshot_read(walk->snapshot, at, &chunk, sizeof chunk))
            return walk_fail(walk, "it has a gap");
        uint64_t size = chunk_size(&chunk);
        if (!has_top && !self->arena->is_main && size == 0 && at + CHUNK_FENCE == end) {
            self->arena->own += CHUNK_FENCE;
            return true;
        }
        if (size == CHUNK_FENCE) {
            self->arena->own += CHUNK_FENCE;
            at += CHUNK_FENCE;
            if (self->arena->is_main && ++fences % 2 == 0)
                at = skip_foreign(self, at, top);
            continue;
        }
        if (!is_chunk(&chunk, at, end) ||
            !snapshot_read(walk->snapshot, at + size, &next, sizeof next))
            return walk_fail(walk, "there is no block at 0x%llx", (unsigned long long)at);
        bool is_last = !has_top && !self->arena->is_main && chunk_size(&next) == 0;
        if (is_last)
            self->arena->own += size;
        else if (next.head & PREV_IN_USE) {
            if (!take_used(self, at, &chunk))
                return false;
        } else {
            if (next.before != size)
                return walk_fail(walk, "a free block at 0x%llx has two sizes",
                                 (unsigned long long)at);
            take_binned(self, at, size);
        }
        at += size;
    }
    return at == top || walk_fail(walk, "an arena does not end at its top");
}

static bool take_top(struct arena_walk *self, uint64_t end) {
    struct chunk chunk;
    uint64_t top = self->record.top;
    if (!snapshot_read(self->walk->snapshot, top, &chunk, sizeof chunk) ||
        top + chunk_size(&chunk) != end)
        return walk_fail(self->walk, "the top of an arena does not fit it");
    self->arena->top = chunk_size(&chunk);
    count_resident(self, top, self->arena->top, &self->arena->resident_free);
    return true;
}

// ---- arenas ------------------------------------------------------------------------------------

static bool walk_main(struct arena_walk *self) {
    struct heap_walk *walk = self->walk;
    struct chunk top;
    if (self->record.top == arena_bin(self->address, 0)) // nothing was ever taken from the break
        return true;
    if (self->record.flags & ARENA_NONCONTIGUOUS)
        return walk_fail(walk, "the main arena is in several pieces, which is not supported yet");
    if (!snapshot_read(walk->snapshot, self->record.top, &top, sizeof top))
        return walk_fail(walk, "the top of the main arena is not there");
    uint64_t end = self->record.top + chunk_size(&top), start = end - self->record.system_size;
    if (self->record.system_size > end)
        return walk_fail(walk, "the main arena is larger than it can be");
    walk->break_start = start;
    walk_add_heap(walk, start, end);
    self->arena->own += align_up(start, CHUNK_ALIGN) - start;
    self->arena->resident = snapshot_resident(walk->snapshot, start, end);
    return walk_segment(self, align_up(start, CHUNK_ALIGN), end) && take_top(self, end);
}

// A heap of an arena that is not the main one. `header` is the size of a heap's own record.
static bool walk_heap(struct arena_walk *self, uint64_t heap, const struct heap_record *record,
                      uint64_t header) {
    struct heap_walk *walk = self->walk;
    uint64_t end = heap + record->size, start = heap + header;
    if (record->size > HEAP_MOST || record->arena != self->address)
        return walk_fail(walk, "a heap at 0x%llx is not its arena's", (unsigned long long)heap);
    if (!record->before)
        start = align_up(self->address + sizeof self->record, CHUNK_ALIGN);
    walk_add_heap(walk, heap, end);
    self->arena->size += record->size;
    self->arena->own += start - heap;
    self->arena->resident += snapshot_resident(walk->snapshot, heap, end);
    bool has_top = self->record.top >= start && self->record.top < end;
    return walk_segment(self, start, end) && (!has_top || take_top(self, end));
}

static bool walk_heaps(struct arena_walk *self) {
    struct heap_walk *walk = self->walk;
    uint64_t header = self->address % HEAP_MOST, heap = self->record.top & -HEAP_MOST;
    if (header != 32 && header != 48)
        return walk_fail(walk, "an arena lies where none can be");
    for (unsigned i = 0; heap; i++) {
        struct heap_record record;
        if (i == ARENAS_MOST || heap % HEAP_MOST ||
            !snapshot_read(walk->snapshot, heap, &record, sizeof record))
            return walk_fail(walk, "the heaps of an arena are not there");
        if (!walk_heap(self, heap, &record, header))
            return false;
        heap = record.before;
    }
    return true;
}

// What of the arena is in memory and neither in use nor free is the allocator's.
static bool walk_arena(struct arena_walk *self) {
    struct census_arena *arena = self->arena;
    if (!(arena->is_main ? walk_main(self) : walk_heaps(self)))
        return false;
    if (arena->is_main)
        arena->size = self->record.system_size;
    arena->resident_other = arena->resident - arena->resident_in_use - arena->resident_free;
    uint64_t sum = arena->in_use.bytes + census_free_of(arena) + arena->own;
    if (arena->size != self->record.system_size || sum != arena->size)
        return walk_fail(self->walk, "the arena at 0x%llx has %llu bytes, and %llu are found",
                         (unsigned long long)self->address,
                         (unsigned long long)self->record.system_size, (unsigned long long)sum);
    if (arena->binned.blocks != self->listed.blocks || arena->binned.bytes != self->listed.bytes)
        return walk_fail(
            self->walk, "%llu blocks of the arena at 0x%llx are free, and its lists have %llu",
            (unsigned long long)arena->binned.blocks, (unsigned long long)self->address,
            (unsigned long long)self->listed.blocks);
    return true;
}

static bool read_arena(struct arena_walk *self) {
    struct heap_walk *walk = self->walk;
    if (!snapshot_read(walk->snapshot, self->address, &self->record, sizeof self->record))
        return walk_fail(walk, "an arena cannot be read");
    for (unsigned i = 0; i < FAST_BINS; i++)
        if (!follow_fast(self, i))
            return false;
    for (unsigned i = 0; i < BINS; i++)
        if (!follow_bin(self, i))
            return false;
    return true;
}

bool walk_arenas(struct heap_walk *walk) {
    struct arena_walk *arenas = NULL;
    size_t count = 0;
    struct census *census = walk->census;
    uint64_t at = walk->allocator->main_arena;
    bool is_fine = true;
    do {
        struct arena_walk *self = vector_push(arenas, count);
        *self = (struct arena_walk){.walk = walk, .address = at};
        is_fine = count < ARENAS_MOST && read_arena(self);
        at = self->record.next;
    } while (is_fine && at != walk->allocator->main_arena);
    if (walk->known_count)
        qsort(walk->known, walk->known_count, sizeof *walk->known, by_address);
    for (size_t i = 0; i < count; i++)
        *vector_push(census->arenas, census->arena_count) =
            (struct census_arena){.address = arenas[i].address, .is_main = i == 0};
    for (size_t i = 0; i < count && is_fine; i++) {
        arenas[i].arena = &census->arenas[i];
        is_fine = walk_arena(&arenas[i]);
    }
    free(arenas);
    if (is_fine && walk->known_found != walk->known_count)
        return walk_fail(walk, "a block that is free is in no arena");
    return is_fine;
}
