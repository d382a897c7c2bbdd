#include "tools/races/target/clocks.h"

#include <sched.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "tools/races/target/races.h"

// ---- memory ------------------------------------------------------------------------------------

struct mapping {
    uint64_t size;
    void *memory;
};

static void map(void *argument) {
    struct mapping *mapping = argument;
    mapping->memory = mmap(NULL, mapping->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping->memory == MAP_FAILED)
        tool_give_up("helgrind: out of memory");
}

enum { CHUNK = 1 << 20 };

void *races_memory(uint64_t size) {
    static uint32_t lock;
    static uint8_t *at, *end;
    void *memory;
    size = (size + 15) & ~15ul;
    if (size >= CHUNK / 4) {
        struct mapping mapping = {.size = size};
        tool_with_vectors(map, &mapping);
        return mapping.memory;
    }
    spin_lock(&lock);
    if (!at || (uint64_t)(end - at) < size) {
        struct mapping mapping = {.size = CHUNK};
        tool_with_vectors(map, &mapping);
        at = mapping.memory;
        end = at + CHUNK;
    }
    memory = at;
    at += size;
    spin_unlock(&lock);
    return memory;
}

static void yield(void *unused) {
    sched_yield();
}

void spin_lock(uint32_t *lock) {
    for (unsigned tries = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); tries++) {
        if (tries % 64 == 63)
            tool_with_vectors(yield, NULL);
        else
            __builtin_ia32_pause();
    }
}

void spin_unlock(uint32_t *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

// ---- vector clocks -----------------------------------------------------------------------------

enum { CLOCK_LEAST = 8 };

static void clock_grow(struct clock *clock, uint32_t size) {
    if (size > clock->room) {
        uint32_t room = clock->room ? clock->room : CLOCK_LEAST;
        while (room < size)
            room *= 2;
        uint64_t *at = races_memory(room * sizeof *at);
        for (uint32_t i = 0; i < clock->size; i++)
            at[i] = clock->at[i];
        __atomic_store_n(&clock->at, at, __ATOMIC_RELEASE);
        clock->room = room;
    }
    for (uint32_t i = clock->size; i < size; i++)
        clock->at[i] = 0;
    if (size > clock->size)
        __atomic_store_n(&clock->size, size, __ATOMIC_RELEASE);
}

void clock_join(struct clock *to, const struct clock *from) {
    uint32_t size = __atomic_load_n(&from->size, __ATOMIC_ACQUIRE);
    const uint64_t *at = __atomic_load_n(&from->at, __ATOMIC_ACQUIRE);
    clock_grow(to, size);
    for (uint32_t i = 0; i < size; i++)
        if (at[i] > to->at[i])
            to->at[i] = at[i];
}

void clock_clear(struct clock *clock) {
    clock->size = 0;
}

void clock_set(struct clock *clock, uint32_t slot, uint64_t value) {
    clock_grow(clock, slot + 1);
    clock->at[slot] = value;
}

// ---- slots -------------------------------------------------------------------------------------

static uint32_t slots_lock, slots_used;
static struct {
    struct clock *clock; // of the thread that has it
    uint64_t last;       // where the next one begins
    bool is_free;
} slots[CLOCK_SLOTS];

uint32_t slot_take(struct clock *clock) {
    uint32_t slot;
    spin_lock(&slots_lock);
    if (slots_used < CLOCK_SLOTS / 4) {
        slot = slots_used++;
    } else { // one that is free, of the thread that ended first as far as that is known
        static uint32_t next;
        uint32_t tries = 0;
        while (!slots[next % slots_used].is_free && tries++ < slots_used)
            next++;
        slot = next++ % slots_used;
        if (!slots[slot].is_free && slots_used < CLOCK_SLOTS)
            slot = slots_used++;
    }
    slots[slot].is_free = false;
    slots[slot].clock = clock;
    clock_set(clock, slot, ++slots[slot].last);
    spin_unlock(&slots_lock);
    return slot;
}

void slot_give(uint32_t slot) {
    spin_lock(&slots_lock);
    slots[slot].last = clock_of(slots[slot].clock, slot);
    slots[slot].clock = NULL;
    slots[slot].is_free = true;
    spin_unlock(&slots_lock);
}

uint32_t slot_count(void) {
    return slots_used;
}

void clock_join_slot(struct clock *to, uint32_t slot, uint64_t clock) {
    spin_lock(&slots_lock);
    if (slots[slot].clock) {
        uint64_t own = clock_of(to, slot);
        clock_join(to, slots[slot].clock);
        // What it has done since is not known to be before.
        clock_set(to, slot, own > clock ? own : clock);
    } else if (clock > clock_of(to, slot)) {
        clock_set(to, slot, clock);
    }
    spin_unlock(&slots_lock);
}

// ---- segments ----------------------------------------------------------------------------------

uint32_t segments_half;
static struct segment *segments;
static uint32_t segments_used[2];

uint32_t segment_make(uint32_t slot, uint64_t clock, uint32_t thread, bool *is_full) {
    enum { NEARLY = SEGMENTS_HALF - 4096 };
    static uint32_t lock;
    if (!__atomic_load_n(&segments, __ATOMIC_ACQUIRE)) {
        spin_lock(&lock);
        if (!segments)
            __atomic_store_n(&segments, races_memory(2 * SEGMENTS_HALF * sizeof *segments),
                             __ATOMIC_RELEASE);
        spin_unlock(&lock);
    }
    uint32_t half = __atomic_load_n(&segments_half, __ATOMIC_ACQUIRE) & 1;
    uint32_t number = __atomic_add_fetch(&segments_used[half], 1, __ATOMIC_RELAXED);
    // The middle byte of a cell never looks like that of a cell's bits: see insert.c.
    while ((number >> 8 & 0xff) == 0xff || (number >> 8 & 0xff) == 0x0f)
        number = __atomic_add_fetch(&segments_used[half], 256, __ATOMIC_RELAXED);
    *is_full = number >= NEARLY;
    if (number >= SEGMENTS_HALF - 1)
        number = SEGMENTS_HALF - 2;
    number += half * SEGMENTS_HALF;
    segments[number] = (struct segment){clock, slot, thread};
    return number;
}

const struct segment *segment_at(uint32_t number) {
    return &segments[number];
}

void segments_renew(void) {
    uint32_t half = (segments_half + 1) & 1;
    segments_used[half] = 0;
    __atomic_add_fetch(&segments_half, 1, __ATOMIC_RELEASE);
}

// ---- syncs -------------------------------------------------------------------------------------

enum { SYNC_BITS = 16, KEY_BITS = 56 };

static struct sync *syncs[1 << SYNC_BITS];

struct sync *sync_find(uint64_t address, enum sync_use use, bool make) {
    uint64_t key = address | (uint64_t)use << KEY_BITS;
    struct sync **bucket = &syncs[hash_bucket(key >> 2, SYNC_BITS)];
    struct sync *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE), *made = NULL;
    for (;;) {
        for (struct sync *at = first; at; at = at->next)
            if (at->key == key)
                return at;
        if (!make)
            return NULL;
        if (!made) {
            made = races_memory(sizeof *made);
            *made = (struct sync){.key = key};
        }
        made->next = first;
        if (__atomic_compare_exchange_n(bucket, &first, made, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return made;
    }
}

void sync_lock(struct sync *sync) {
    spin_lock(&sync->lock);
}

void sync_unlock(struct sync *sync) {
    spin_unlock(&sync->lock);
}

void sync_acquire_clock(struct races_thread *thread, struct sync *sync, const struct clock *clock) {
    sync_lock(sync);
    clock_join(&thread->clock, clock);
    sync_unlock(sync);
}

void sync_release_clock(struct races_thread *thread, struct sync *sync, struct clock *clock) {
    races_take_pending(thread);
    sync_lock(sync);
    clock_join(clock, &thread->clock);
    sync_unlock(sync);
    races_released(thread);
}

void sync_acquire(struct races_thread *thread, struct sync *sync) {
    sync_acquire_clock(thread, sync, &sync->all);
}

void sync_release(struct races_thread *thread, struct sync *sync) {
    sync_release_clock(thread, sync, &sync->all);
}
