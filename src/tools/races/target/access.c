// Accesses to memory that the inserted code has not found in order at a glance. Plain.
//
// A thread compares its access with what the cell has seen, then exchanges the cell for one that
// has seen it, too; if another thread was faster, it begins again. So of two accesses that are not
// in order, the one that comes to its cell later finds the other, whatever the schedule.
//
// What becomes of an entry when bytes are accessed: a write replaces all that is known of its
// bytes. A read replaces reads that were before it. A read by the writer itself stands beside the
// write, because others may know of the one and not of the other.
#include "base/hash.h"
#include "tools/races/target/cells.h"

enum { ALL_READ = 0xf };
enum { LOOKED_AT_MOST = 1 << 20 }; // bytes of one access by a function or a string instruction

struct look {
    struct races_thread *thread;
    uint64_t address; // of the whole access
    unsigned size, kind;
    bool is_noted, is_atomic;
};

// ---- beginning anew ----------------------------------------------------------------------------

static uint32_t renew_lock;

static void clear_all(void *unused) {
    struct tool_mapping mapping;
    for (uint64_t at = 0; tool_mapping_at(at, &mapping) && mapping.end > at; at = mapping.end)
        if (tool_has_shadow(mapping.start, mapping.end - mapping.start))
            tool_shadow_clear(mapping.start, mapping.end);
}

// Memory is as if nobody had accessed it. Cells of the old half that a thread writes meanwhile
// count for nothing.
static void renew(void) {
    uint32_t before = segments_half;
    spin_lock(&renew_lock);
    if (before == segments_half) {
        cells_renew();
        segments_renew();
        tool_with_vectors(clear_all, NULL);
    }
    spin_unlock(&renew_lock);
}

static void begin_segment(struct races_thread *thread) {
    bool is_full = false;
    uint32_t half = __atomic_load_n(&segments_half, __ATOMIC_ACQUIRE);
    if (thread->segment && thread->half == half)
        return;
    thread->segment = segment_make(thread->slot, clock_of(&thread->clock, thread->slot),
                                   thread->number, &is_full);
    thread->half = half;
    races_set_patterns(thread);
    if (is_full) {
        renew();
        thread->segment = 0;
        begin_segment(thread);
    }
}

void races_released(struct races_thread *thread) {
    clock_set(&thread->clock, thread->slot, clock_of(&thread->clock, thread->slot) + 1);
    thread->segment = 0;
    races_set_patterns(thread);
}

// ---- atomics -----------------------------------------------------------------------------------

static struct sync *atomic_at(uint64_t address, bool make) {
    return sync_find(address & ~7ul, SYNC_ATOMIC, make);
}

void races_take_pending(struct races_thread *thread) {
    for (uint32_t i = 0; i < thread->pending_count; i++) {
        struct sync *sync = atomic_at(thread->pending[i], false);
        if (sync)
            sync_acquire(thread, sync);
    }
    if (!thread->handlers)
        thread->pending_count = 0;
}

// The value is read by the instruction that comes now, and what its writer knew is known from the
// next access on.
static void acquire_later(struct races_thread *thread, uint64_t address) {
    for (uint32_t i = 0; i < thread->pending_count; i++)
        if (thread->pending[i] == (address & ~7ul))
            return;
    if (thread->pending_count == RACES_PENDING) {
        for (uint32_t i = 1; i < RACES_PENDING; i++)
            thread->pending[i - 1] = thread->pending[i];
        thread->pending_count--;
    }
    thread->pending[thread->pending_count++] = address & ~7ul;
}

// An access to memory that is accessed atomically, here or elsewhere.
static void access_atomic(struct look *look) {
    struct races_thread *thread = look->thread;
    struct sync *sync = atomic_at(look->address, true);
    if (look->is_atomic)
        return;
    look->is_atomic = true;
    if (look->kind & ACCESS_WRITE)
        sync_release(thread, sync);
    if (look->kind & ACCESS_READ)
        acquire_later(thread, look->address);
}

// From now on the cell is atomic. Who has written it before has released what it knew.
static void make_atomic(struct look *look, uint32_t *cell) {
    uint32_t entries[NODE_MOST], old = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
    do {
        if (old == CELL_ATOMIC)
            return;
    } while (!__atomic_compare_exchange_n(cell, &old, CELL_ATOMIC, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    uint32_t count = cell_entries(old, entries);
    struct sync *sync = atomic_at(look->address, true);
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = segment_at(cell_segment(entries[i]));
        if (!(entries[i] >> CELL_WRITES & 0xf) || segment->slot == look->thread->slot)
            continue;
        sync_lock(sync);
        clock_join_slot(&sync->all, segment->slot, segment->clock);
        sync_unlock(sync);
        if (look->kind & ACCESS_READ)
            clock_join(&look->thread->clock, &sync->all);
    }
}

// ---- one cell ----------------------------------------------------------------------------------

static bool is_before(const struct races_thread *thread, uint32_t number) {
    const struct segment *segment = segment_at(number);
    return segment->clock <= clock_of(&thread->clock, segment->slot);
}

static void note(struct look *look) {
    if (!look->is_noted)
        history_add(look->thread, look->address, look->size, look->kind);
    look->is_noted = true;
}

// What of the entry conflicts with the access of these bits: the kinds of its accesses.
static unsigned conflict_of(uint32_t entry, uint32_t bits) {
    uint32_t writes = bits >> CELL_WRITES & 0xf, all = bits & 0xf;
    unsigned kinds = 0;
    if (entry >> CELL_WRITES & all & 0xf)
        kinds |= ACCESS_WRITE;
    if (writes & entry & 0xf)
        kinds |= ACCESS_READ;
    return kinds;
}

// What is left of the entry after the access.
static uint32_t left_of(const struct races_thread *thread, uint32_t entry, uint32_t bits) {
    uint32_t writes = bits >> CELL_WRITES & 0xf, all = bits & 0xf;
    if (writes)
        return entry & ~(all | all << CELL_WRITES);
    // Reads that are before this one; bytes that were written keep their bit.
    uint32_t only_read = entry & ~(entry >> CELL_WRITES) & all;
    return is_before(thread, cell_segment(entry)) ? entry & ~only_read : entry;
}

static struct races_memo *memo_at(struct races_thread *thread, uint32_t old, uint32_t bits) {
    uint32_t hash = (old >> 4 ^ old ^ bits << 5) * 0x9e3779b1u;
    return &thread->memos[hash / (UINT32_MAX / RACES_MEMOS + 1)];
}

static uint32_t memo_find(struct races_thread *thread, uint32_t old, uint32_t bits) {
    const struct races_memo *memo = memo_at(thread, old, bits);
    return memo->old == old && memo->bits == bits && memo->segment == thread->segment ? memo->made
                                                                                      : 0;
}

// The cell after the access. 0: it is atomic now.
static uint32_t next_cell(struct look *look, uint32_t old, uint32_t bits, bool *is_full) {
    struct races_thread *thread = look->thread;
    uint32_t entries[NODE_MOST + 1], kept = 0;
    uint32_t own = thread->segment << CELL_SEGMENT | bits, made = memo_find(thread, old, bits);
    bool has_race = false;
    if (made)
        return made;
    uint32_t count = cell_entries(old, entries);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry = entries[i], number = cell_segment(entry);
        if (number == thread->segment) {
            own |= entry & CELL_BITS;
            continue;
        }
        unsigned kinds = conflict_of(entry, bits);
        if (kinds && !is_before(thread, number)) {
            has_race = true;
            if (conflict_judge(look->address, look->size, look->kind, number, kinds) ==
                VERDICT_ATOMIC)
                return 0;
        }
        entry = left_of(thread, entry, bits);
        if (entry & CELL_BITS)
            entries[kept++] = entry;
    }
    // In the order of their numbers: equal sets are one node.
    uint32_t at = kept++;
    for (; at && entries[at - 1] > own; at--)
        entries[at] = entries[at - 1];
    entries[at] = own;
    if (kept > NODE_MOST)
        kept = NODE_MOST;
    made = cell_make(entries, kept, is_full);
    if (!made)
        return own; // there is no room for the others
    if (!has_race)
        *memo_at(thread, old, bits) = (struct races_memo){old, bits, thread->segment, made};
    return made;
}

// Whether the segment at hand has read all bytes of the node's cells.
static bool has_read_all(const struct races_thread *thread, uint32_t cell) {
    uint32_t entries[NODE_MOST], count = cell_entries(cell, entries);
    for (uint32_t i = 0; i < count; i++)
        if (cell_segment(entries[i]) == thread->segment)
            return (entries[i] & ALL_READ) == ALL_READ;
    return false;
}

// False: it is atomic.
static bool access_cell(struct look *look, uint64_t address, uint32_t bytes) {
    struct races_thread *thread = look->thread;
    uint32_t *cell = cell_of(address);
    uint32_t bits = look->kind & ACCESS_WRITE ? bytes | bytes << CELL_WRITES : bytes;
    uint32_t old = __atomic_load_n(cell, __ATOMIC_ACQUIRE), made;
    bool is_full = false;
    do {
        if (old == CELL_ATOMIC)
            return false;
        if (!old)
            made = thread->segment << CELL_SEGMENT | bits;
        else if (!(old & CELL_NODE) && cell_segment(old) == thread->segment)
            made = old | bits;
        else
            made = next_cell(look, old, bits, &is_full);
        if (!made)
            return false;
        if (made == old) {
            if (made & CELL_NODE && has_read_all(thread, made))
                thread->hits[made % RACES_HITS] = made;
            return true;
        }
        note(look); // first: who finds the cell looks for it
    } while (
        !__atomic_compare_exchange_n(cell, &old, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    if (is_full)
        renew();
    return true;
}

// ---- accesses ----------------------------------------------------------------------------------

static void look_at(struct look *look) {
    uint64_t end = look->address + look->size;
    for (uint64_t at = look->address; at < end;) {
        uint64_t next = (at & ~(uint64_t)(CELL_BYTES - 1)) + CELL_BYTES;
        uint64_t stop = next < end ? next : end;
        uint32_t bytes = ((1u << (stop - at)) - 1) << (at % CELL_BYTES);
        if (look->kind & ACCESS_ATOMIC || !access_cell(look, at, bytes)) {
            make_atomic(look, cell_of(at));
            access_atomic(look);
            begin_segment(look->thread); // it may have been a release
        }
        at = next;
    }
}

void races_access(uint64_t address, uint64_t size, unsigned kind) {
    struct races_thread *thread = races_thread();
    if (!races_has_threads || !size)
        return;
    if (size > LOOKED_AT_MOST)
        size = LOOKED_AT_MOST;
    if (!tool_has_shadow(address, size))
        return;
    if (thread->pending_count)
        races_take_pending(thread);
    begin_segment(thread);
    while (size) {
        unsigned step = size < ACCESS_MOST ? size : ACCESS_MOST;
        struct look look = {.thread = thread, .address = address, .size = step, .kind = kind};
        look_at(&look);
        address += step;
        size -= step;
    }
}
