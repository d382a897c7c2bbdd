// Vector clocks, segments and syncs. Plain; any thread.
#ifndef QUERN_RACES_CLOCKS_H
#define QUERN_RACES_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_SLOTS = 1024 };

// A vector clock: entries beyond `size` are 0.
struct clock {
    uint32_t size, room;
    uint64_t *at;
};

void clock_join(struct clock *to, const struct clock *from);
void clock_clear(struct clock *);
void clock_set(struct clock *, uint32_t slot, uint64_t value);
static inline uint64_t clock_of(const struct clock *clock, uint32_t slot) {
    return slot < clock->size ? clock->at[slot] : 0;
}

// ---- segments ----

enum { SEGMENTS_HALF = 1 << 22 };

struct segment {
    uint64_t clock;
    uint32_t slot, thread; // thread: as reports number it
};

extern uint32_t segments_half; // 0, 1, …: how often they have begun anew
// The number of a new one, not 0. *is_full: it is time to begin anew.
uint32_t segment_make(uint32_t slot, uint64_t clock, uint32_t thread, bool *is_full);
const struct segment *segment_at(uint32_t number);
static inline uint32_t segment_half(uint32_t number) {
    return number / SEGMENTS_HALF;
}
// Forgets what memory has seen (cells.c): segments begin anew.
void segments_renew(void);

// ---- threads ----

// A slot and where its clock begins. The thread's clock, as others may read it, is at *clock.
uint32_t slot_take(struct clock *clock);
void slot_give(uint32_t slot);
uint32_t slot_count(void);
// Joins what the thread of a slot knows now. Of use when it is known that it was before.
void clock_join_slot(struct clock *to, uint32_t slot, uint64_t clock);

// ---- syncs ----

// Each key names one; the same address may be used in several ways.
enum sync_use {
    SYNC_OBJECT, // a mutex, a condition variable and so on
    SYNC_ATOMIC,
    SYNC_BIRTH, // of a thread, by its thread pointer
    SYNC_EXIT,
    SYNC_CHANNEL, // a pipe or socket
    SYNC_SIGNAL,
    SYNC_REQUEST, // ANNOTATE_HAPPENS_BEFORE
    SYNC_FUTEX,
};

struct sync {
    uint64_t key;
    struct sync *next;
    uint32_t lock;
    uint32_t limit, arrived, generation; // of a barrier; of once: who has entered and left
    uint32_t owner;                      // of a mutex: the thread's number, 0: none
    uint32_t depth;
    uint64_t order; // node of the lock graph, 0: none
    uint32_t made;  // stack of its first acquisition
    struct clock all;
    struct clock writers; // of a read-write lock; of a barrier: of odd generations
};

struct sync *sync_find(uint64_t address, enum sync_use, bool make);
void sync_lock(struct sync *);
void sync_unlock(struct sync *);
void spin_lock(uint32_t *);
void spin_unlock(uint32_t *);

struct races_thread;
void sync_acquire(struct races_thread *, struct sync *);
void sync_release(struct races_thread *, struct sync *);
void sync_acquire_clock(struct races_thread *, struct sync *, const struct clock *);
void sync_release_clock(struct races_thread *, struct sync *, struct clock *);

// Memory that is never given back.
void *races_memory(uint64_t size);

#endif
