// Stacks are written once into chunks of memory and found through a table that grows by further
// levels; neither ever moves or is emptied, so nobody needs a lock. The number of a stack is the
// place of its first word. General registers only.
#include "tools/shared/stacks.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "engine/tool.h"

enum {
    FRAMES = 1500,
    PROBES = 8,  // tried in each level: a cache line
    LEVELS = 12, // the first has 2^LEVEL_BITS entries, each next one twice as many
    LEVEL_BITS = 12,
    CHUNK_BITS = 17,  // words in a chunk
    CHUNKS = 1 << 13, // numbers have 30 bits (findings.h adds two)
    COUNT_BITS = 11,  // of a stack's first word; the rest is its hash
};

_Static_assert(FRAMES < 1 << COUNT_BITS, "");

static _Atomic(_Atomic uint64_t *) levels[LEVELS]; // entries: upper half of the hash, number
static _Atomic(uint64_t *) chunks[CHUNKS];
static _Atomic uint32_t next_word = 1; // 0 means no stack
static unsigned depth = 12;

void stacks_start(void) {
    const char *option = tool_option("num-callers");
    unsigned wanted = 0;
    for (; option && *option >= '0' && *option <= '9' && wanted < FRAMES; option++)
        wanted = wanted * 10 + (unsigned)(*option - '0');
    if (wanted)
        depth = wanted < FRAMES ? wanted : FRAMES;
}

// ---- memory ------------------------------------------------------------------------------------

struct mapping {
    size_t size;
    void *memory;
};

static void map(void *argument) {
    struct mapping *mapping = argument;
    mapping->memory = mmap(NULL, mapping->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void unmap(void *argument) {
    struct mapping *mapping = argument;
    munmap(mapping->memory, mapping->size);
}

// What *place points to, mapped by whoever comes first.
static void *map_once(_Atomic(void *) *place, size_t size) {
    void *memory = atomic_load_explicit(place, memory_order_acquire);
    if (memory)
        return memory;
    struct mapping mapping = {.size = size};
    tool_with_vectors(map, &mapping);
    if (mapping.memory == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong(place, &memory, mapping.memory))
        return mapping.memory;
    tool_with_vectors(unmap, &mapping);
    return memory;
}

static uint64_t *chunk_at(uint32_t word) {
    return map_once((_Atomic(void *) *)&chunks[word >> CHUNK_BITS], sizeof(uint64_t) << CHUNK_BITS);
}

// Room for consecutive words within a chunk. 0: none left.
static uint32_t take_words(size_t count) {
    uint32_t first = atomic_load(&next_word), start;
    do {
        start = first;
        if ((start + count - 1) >> CHUNK_BITS != start >> CHUNK_BITS)
            start = ((start >> CHUNK_BITS) + 1) << CHUNK_BITS;
        if ((start + count) >> CHUNK_BITS >= CHUNKS)
            return 0;
    } while (!atomic_compare_exchange_weak(&next_word, &first, start + count));
    return chunk_at(start) ? start : 0;
}

// ---- the table ---------------------------------------------------------------------------------

// Two sums that do not wait for each other.
static uint64_t hash_of(const uint64_t *pcs, size_t count) {
    const uint64_t factor = HASH_FACTOR;
    uint64_t even = count, odd = ~even, hash;
    for (size_t i = 0; i + 1 < count; i += 2) {
        even = (even ^ pcs[i]) * factor;
        odd = (odd ^ pcs[i + 1]) * factor;
    }
    if (count & 1)
        even = (even ^ pcs[count - 1]) * factor;
    hash = even ^ (odd << 32 | odd >> 32);
    hash = (hash ^ hash >> 29) * factor;
    return hash ^ hash >> 32;
}

size_t stack_pcs(uint32_t stack, const uint64_t **pcs) {
    stack &= (1u << 30) - 1;
    const uint64_t *chunk =
        stack ? atomic_load_explicit(&chunks[stack >> CHUNK_BITS], memory_order_acquire) : NULL;
    if (!chunk) {
        *pcs = NULL;
        return 0;
    }
    const uint64_t *words = chunk + (stack & ((1u << CHUNK_BITS) - 1));
    *pcs = words + 1;
    return words[0] & ((1u << COUNT_BITS) - 1);
}

static bool is_same(uint32_t stack, const uint64_t *pcs, size_t count) {
    const uint64_t *known;
    if (stack_pcs(stack, &known) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (known[i] != pcs[i])
            return false;
    return true;
}

static uint32_t write_stack(const uint64_t *pcs, size_t count, uint64_t hash) {
    uint32_t stack = take_words(count + 1);
    if (!stack)
        return 0;
    uint64_t *words = chunk_at(stack) + (stack & ((1u << CHUNK_BITS) - 1));
    words[0] = (hash & ~(((uint64_t)1 << COUNT_BITS) - 1)) | count;
    for (size_t i = 0; i < count; i++)
        words[i + 1] = pcs[i];
    return stack;
}

// Every thread tries the same entries in the same order and none is ever emptied: a stack has one
// number.
uint32_t stack_intern(const uint64_t *pcs, size_t count) {
    if (!count)
        return 0;
    if (count > FRAMES)
        count = FRAMES;
    uint64_t hash = hash_of(pcs, count), upper = hash >> 32 << 32;
    uint32_t written = 0;
    for (unsigned level = 0; level < LEVELS; level++) {
        size_t size = (size_t)1 << (LEVEL_BITS + level);
        _Atomic uint64_t *table = map_once((_Atomic(void *) *)&levels[level], size * sizeof *table);
        if (!table)
            return 0;
        table += (uint32_t)hash % size / PROBES * PROBES;
        for (unsigned probe = 0; probe < PROBES; probe++) {
            uint64_t entry = atomic_load_explicit(&table[probe], memory_order_acquire);
            if (!entry) {
                if (!written && !(written = write_stack(pcs, count, hash)))
                    return 0;
                if (atomic_compare_exchange_strong(&table[probe], &entry, upper | written))
                    return written;
            }
            if (entry >> 32 << 32 == upper && is_same((uint32_t)entry, pcs, count))
                return (uint32_t)entry;
        }
    }
    return 0;
}

// ---- here --------------------------------------------------------------------------------------

struct walk {
    size_t count;
    uint64_t pcs[FRAMES];
};

static void walk_stack(void *argument) {
    struct walk *walk = argument;
    walk->count = tool_stack(walk->pcs, depth);
}

uint32_t stack_here(void) {
    struct walk walk;
    uint32_t stack = tool_stack_recall();
    if (stack)
        return stack;
    walk.count = tool_stack_quickly(walk.pcs, depth);
    if (!walk.count) {
        tool_with_vectors(walk_stack, &walk);
        return stack_intern(walk.pcs, walk.count);
    }
    stack = stack_intern(walk.pcs, walk.count);
    if (stack)
        tool_stack_note(walk.pcs, walk.count, stack);
    return stack;
}
