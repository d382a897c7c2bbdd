// The allocator that stands in for the target's own, as Valgrind's does. General registers only.
//
// Slots have powers of two for sizes, so that an address leads to its slot's note by shifts alone
// (tool.h). They are never divided or joined. Freed slots are given out again, the last one first.
// Small slots come from segments; large ones are mapped one by one, as far as they are used.
//
// Each thread has a store of free slots of each of the smaller sizes, from which it takes without a
// lock, and to which it returns what it frees. What is too much for a store goes to where all
// threads take from, in rows of several slots.
#include <stdatomic.h>
#include <sys/mman.h>

#include "tools/dhat/target/dhat.h"

enum {
    PAGE = 4096,
    SEGMENT = 4 << 20,    // bytes at least
    SEGMENT_SLOTS = 4,    // at least
    MAPPED_BITS = 26,     // from here on, a slot has a mapping of its own
    ROW_BYTES = 64 << 10, // of slots that go to a store or from it at once
    ROW_SLOTS = 64,       // at most
    MARGIN = 64, // programs read a little around their blocks, and get away with it natively
};

// What threads share.
static struct class {
    uint32_t free;      // number of the first free slot, 1 for slot 0; 0: none. Of small slots, of
                        // the first row of them
    uint32_t next, end; // slots of the segment that are still unused
    _Atomic uint32_t fresh; // slots from here on are not mapped
} classes[HEAP_MOST + 1];

static uint64_t size_of_slot(unsigned bits) {
    return (uint64_t)1 << bits;
}

static unsigned bits_for(uint64_t size) {
    if (size <= 1u << HEAP_LEAST)
        return HEAP_LEAST;
    return 64 - __builtin_clzll(size - 1);
}

static bool is_mapped_singly(unsigned bits) {
    return bits >= MAPPED_BITS;
}

// ---- memory ------------------------------------------------------------------------------------

struct mapping {
    unsigned bits;
    uint32_t slots;
    uint64_t before;      // of it, in front of the slot
    uint64_t start, size; // start 0: none
};

static uint64_t slots_of_class(unsigned bits) {
    uint64_t all = (uint64_t)1 << (HEAP_CLASS_BITS - bits);
    return all < UINT32_MAX ? all : UINT32_MAX;
}

static void map(void *argument) {
    struct mapping *mapping = argument;
    struct class *class = &classes[mapping->bits];
    uint32_t fresh;
    mapping->start = 0;
    if (!tool_may_map(mapping->size))
        return;
    do {
        fresh = atomic_load(&class->fresh);
        do {
            if (fresh + (uint64_t)mapping->slots > slots_of_class(mapping->bits)) {
                mapping->start = 0;
                return;
            }
        } while (!atomic_compare_exchange_weak(&class->fresh, &fresh, fresh + mapping->slots));
        mapping->start = heap_slot(mapping->bits, fresh) - mapping->before;
    } while (!tool_map_at(mapping->start, mapping->size)); // the target has put something there
}

static void map_again(void *argument) {
    struct mapping *mapping = argument;
    if (!tool_may_map(mapping->size) || !tool_map_at(mapping->start, mapping->size))
        mapping->start = 0;
}

static void unmap(void *argument) {
    const struct mapping *mapping = argument;
    tool_unmap(mapping->start, mapping->size);
}

static void give_back(void *argument) {
    const struct mapping *mapping = argument;
    madvise((void *)mapping->start, mapping->size, MADV_DONTNEED);
}

static uint32_t number_of(uint64_t slot) {
    unsigned bits = heap_bits(slot);
    return (slot - heap_slot(bits, 0)) >> bits;
}

// Without the lock. False: no memory.
static bool extend(unsigned bits) {
    uint64_t size = SEGMENT_SLOTS * size_of_slot(bits);
    if (size < SEGMENT)
        size = SEGMENT;
    struct mapping mapping = {.bits = bits, .slots = size >> bits, .size = size};
    tool_with_vectors(map, &mapping);
    if (!mapping.start)
        return false;
    events_lock();
    struct class *class = &classes[bits]; // what is left of the segment before is lost
    class->next = number_of(mapping.start) + 1;
    class->end = class->next + (uint32_t)((size - MARGIN) >> bits) - 1;
    events_unlock();
    return true;
}

// ---- slots -------------------------------------------------------------------------------------

struct slot {
    uint64_t start; // 0: none
    bool is_zero;
};

// With the lock.
static uint64_t take_free(unsigned bits) {
    struct class *class = &classes[bits];
    if (!class->free)
        return 0;
    uint32_t number = class->free - 1;
    class->free = note_at(bits, number)->next;
    return heap_slot(bits, number);
}

static void note_use(unsigned bits, uint32_t number) {
    if (number >= dhat_header->notes[bits])
        dhat_header->notes[bits] = number + 1;
}

// ---- stores ------------------------------------------------------------------------------------

static uint32_t slots_in_row(unsigned bits) {
    uint32_t count = ROW_BYTES >> bits;
    return count > ROW_SLOTS ? ROW_SLOTS : count ? count : 1;
}

// With the lock. The row begins with the slot of that number (1 for slot 0).
static void share_row(unsigned bits, uint32_t first, uint32_t count) {
    struct dhat_note *note = note_at(bits, first - 1);
    note->next_row = classes[bits].free;
    note->in_row = count;
    classes[bits].free = first;
}

// With the lock. False: nothing is left.
static bool take_shared(struct slot_store *store, unsigned bits) {
    struct class *class = &classes[bits];
    if (class->free) {
        const struct dhat_note *note = note_at(bits, class->free - 1);
        store->free = class->free;
        store->count = note->in_row;
        class->free = note->next_row;
        return true;
    }
    if (class->next >= class->end)
        return false;
    uint32_t left = class->end - class->next, wanted = slots_in_row(bits);
    store->next = class->next;
    store->end = class->next += left < wanted ? left : wanted;
    note_use(bits, store->end - 1);
    return true;
}

static bool refill(struct slot_store *store, unsigned bits) {
    bool done;
    do {
        events_lock();
        done = take_shared(store, bits);
        events_unlock();
    } while (UNLIKELY(!done) && extend(bits));
    return done;
}

static struct slot take_stored(struct slot_store *store, unsigned bits) {
    if (UNLIKELY(!store->free && store->next >= store->end) && !refill(store, bits))
        return (struct slot){0};
    if (!store->free)
        return (struct slot){heap_slot(bits, store->next++), true};
    uint32_t number = store->free - 1;
    store->free = note_at(bits, number)->next;
    store->count--;
    return (struct slot){heap_slot(bits, number), false};
}

// The slots that were freed last stay.
static __attribute__((noinline)) void share_rest(struct slot_store *store, unsigned bits,
                                                 uint32_t kept) {
    struct dhat_note *last = note_at(bits, store->free - 1);
    for (uint32_t i = 1; i < kept; i++)
        last = note_at(bits, last->next - 1);
    events_lock();
    share_row(bits, last->next, store->count - kept);
    events_unlock();
    last->next = 0;
    store->count = kept;
}

static void put_into_store(struct slot_store *store, unsigned bits, uint32_t number) {
    uint32_t row = slots_in_row(bits);
    note_at(bits, number)->next = store->free;
    store->free = number + 1;
    if (UNLIKELY(++store->count > 2 * row))
        share_rest(store, bits, row);
}

void slots_thread_ended(struct dhat_thread *thread) {
    for (unsigned bits = HEAP_LEAST; bits < STORED_BITS; bits++) {
        struct slot_store *store = &thread->stores[bits];
        while (store->next < store->end)
            put_into_store(store, bits, store->next++);
        events_lock();
        if (store->free)
            share_row(bits, store->free, store->count);
        events_unlock();
        *store = (struct slot_store){0};
    }
}

// ---- large slots -------------------------------------------------------------------------------

static struct slot take_slot(unsigned bits) {
    struct class *class = &classes[bits];
    struct slot slot;
    do {
        events_lock();
        slot = (struct slot){take_free(bits), true};
        if (!slot.start && class->next < class->end) {
            slot.start = heap_slot(bits, class->next);
            note_use(bits, class->next++);
        }
        events_unlock();
    } while (!slot.start && extend(bits));
    return slot;
}

// A slot that is mapped singly has a page more on either side; the one in front is the last of the
// slot before, which is never full.
static uint64_t mapped_size(uint64_t size) {
    return ((size + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + 2 * PAGE;
}

static struct slot take_mapping(unsigned bits, uint64_t size) {
    struct mapping mapping = {.bits = bits, .slots = 1, .before = PAGE, .size = mapped_size(size)};
    events_lock();
    uint64_t used = take_free(bits);
    events_unlock();
    mapping.start = used - PAGE;
    if (used)
        tool_with_vectors(map_again, &mapping);
    if (!used || !mapping.start)
        tool_with_vectors(map, &mapping);
    if (!mapping.start)
        return (struct slot){0};
    uint64_t start = mapping.start + PAGE;
    events_lock();
    note_use(bits, number_of(start));
    events_unlock();
    return (struct slot){start, true};
}

static struct slot find_slot(struct dhat_thread *thread, size_t size, size_t alignment) {
    uint64_t most = (uint64_t)1 << HEAP_MOST;
    if (size > most - 4 * PAGE || alignment > most)
        return (struct slot){0};
    unsigned bits = bits_for(size > alignment ? size : alignment);
    if (LIKELY(bits < STORED_BITS))
        return take_stored(&thread->stores[bits], bits);
    if (is_mapped_singly(bits) && mapped_size(size) > size_of_slot(bits))
        bits++;
    if (bits > HEAP_MOST)
        return (struct slot){0};
    return is_mapped_singly(bits) ? take_mapping(bits, size) : take_slot(bits);
}

// What a block that has become smaller does not need any more.
static void release_rest(uint64_t start, uint64_t old_size, uint64_t size) {
    struct mapping rest = {.start = start - PAGE + mapped_size(size),
                           .size = mapped_size(old_size) - mapped_size(size)};
    if (is_mapped_singly(heap_bits(start)) && rest.size)
        tool_with_vectors(unmap, &rest);
}

static void release_large(uint64_t start, uint64_t size, unsigned bits) {
    struct mapping mapping = {.start = start, .size = size_of_slot(bits)};
    if (is_mapped_singly(bits)) {
        mapping.start -= PAGE;
        mapping.size = mapped_size(size);
        tool_with_vectors(unmap, &mapping);
    } else {
        tool_with_vectors(give_back, &mapping);
    }
    uint32_t number = number_of(start);
    events_lock();
    note_at(bits, number)->next = classes[bits].free;
    classes[bits].free = number + 1;
    events_unlock();
}

// The block is gone already.
static void release(struct dhat_thread *thread, uint64_t start, uint64_t size) {
    unsigned bits = heap_bits(start);
    if (LIKELY(bits < STORED_BITS))
        put_into_store(&thread->stores[bits], bits, number_of(start));
    else
        release_large(start, size, bits);
}

// ---- blocks ------------------------------------------------------------------------------------

static void fill(uint64_t start, size_t size) {
    __asm__ volatile("rep stosb" : "+D"(start), "+c"(size) : "a"(0) : "memory");
}

static void drop_counters(struct dhat_note *note, uint64_t start) {
    uint16_t *counters = counters_of(start);
    if (note->counted_end)
        fill((uint64_t)counters, note->size * sizeof *counters);
    note->counted_end = 0;
}

uint64_t slots_allocate(size_t size, size_t alignment, bool zeroed) {
    struct dhat_thread *thread = tool_thread_state();
    size = size ? size : 1;
    uint32_t point = dhat_mode == DHAT_HEAP ? point_here() : 0;
    struct slot slot = find_slot(thread, size, alignment);
    if (UNLIKELY(!slot.start))
        return 0;
    struct dhat_note *note = note_of(slot.start);
    begin_change(thread);
    note_set_size(note, slot.start, size);
    note->point = point;
    note->counted_end = 0;
    for (unsigned i = 0; i < DHAT_LANES; i++)
        note->reads[i] = note->writes[i] = 0;
    if (point)
        block_made(thread, note, slot.start);
    end_change(thread);
    if (zeroed && !slot.is_zero)
        fill(slot.start, size);
    return slot.start;
}

// The note of the block that begins at the address; NULL: none does.
static struct dhat_note *note_of_block(uint64_t address) {
    struct dhat_note *note = note_of(address);
    return note && address == slot_start(address) && note->size ? note : NULL;
}

// What is no block is left alone.
void slots_free(uint64_t address) {
    struct dhat_thread *thread = tool_thread_state();
    struct dhat_note *note = note_of_block(address);
    if (UNLIKELY(!note))
        return;
    uint64_t size = note->size;
    begin_change(thread);
    if (note->point)
        block_gone(thread, note, address);
    drop_counters(note, address);
    note_set_size(note, address, 0);
    end_change(thread);
    release(thread, address, size);
}

size_t slots_size_of(uint64_t address) {
    const struct dhat_note *note = note_of_block(address);
    return note ? note->size : 0;
}

static void copy(uint64_t to, uint64_t from, size_t size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// What is known of a block goes with it to another slot.
static void move_note(struct dhat_note *to, const struct dhat_note *from) {
    to->counted_end = 0;
    to->point = from->point;
    for (unsigned i = 0; i < DHAT_LANES; i++) {
        to->reads[i] = from->reads[i];
        to->writes[i] = from->writes[i];
    }
}

// A block that grows moves.
uint64_t slots_resize(uint64_t address, size_t size, size_t alignment, bool zeroed) {
    struct dhat_thread *thread = tool_thread_state();
    struct dhat_note *note = note_of_block(address), *to = note;
    size = size ? size : 1;
    if (UNLIKELY(!note))
        return 0;
    bool grows = size > note->size;
    uint64_t block = address, old_size = note->size;
    drop_counters(note, address);
    if (grows) {
        block = find_slot(thread, size, alignment).start;
        if (!block)
            return 0;
        copy(block, address, old_size);
        if (zeroed)
            fill(block + old_size, size - old_size);
        to = note_of(block);
    }
    begin_change(thread);
    if (note->point)
        block_resized(thread, note, size);
    if (grows) {
        move_note(to, note);
        note_set_size(note, address, 0);
    }
    note_set_size(to, block, size);
    end_change(thread);
    if (grows)
        release(thread, address, old_size);
    else
        release_rest(address, old_size, size);
    return block;
}
