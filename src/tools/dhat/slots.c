// The allocator that stands in for the target's own, as Valgrind's does. General registers only.
//
// Slots have powers of two for sizes, so that an address leads to its slot's note by shifts alone
// (tool.h). They are never divided or joined. Freed slots are given out again, the last one first.
// Small slots come from segments; large ones are mapped one by one, as far as they are used.
#include <stdatomic.h>
#include <sys/mman.h>

#include "tools/dhat/dhat.h"

enum {
    PAGE = 4096,
    SEGMENT = 4 << 20,   // bytes at least
    SEGMENT_SLOTS = 4,   // at least
    MAPPED_BITS = 26,    // from here on, a slot has a mapping of its own
    GIVE_BACK_BITS = 20, // of this size and more, memory of free slots is given back
    MARGIN = 64, // programs read a little around their blocks, and get away with it natively
};

static struct class {
    uint32_t free;          // number of the first free slot, 1 for slot 0; 0: none
    uint32_t next, end;     // slots of the segment that are still unused
    _Atomic uint32_t fresh; // slots from here on are not mapped
} classes[TOOL_HEAP_MOST + 1];

static uint64_t size_of_slot(unsigned bits) {
    return (uint64_t)1 << bits;
}

static unsigned bits_for(uint64_t size) {
    if (size <= 1u << TOOL_HEAP_LEAST)
        return TOOL_HEAP_LEAST;
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
    uint64_t all = (uint64_t)1 << (TOOL_HEAP_CLASS_BITS - bits);
    return all < UINT32_MAX ? all : UINT32_MAX;
}

static void map(void *argument) {
    struct mapping *mapping = argument;
    struct class *class = &classes[mapping->bits];
    uint32_t fresh;
    do {
        fresh = atomic_load(&class->fresh);
        do {
            if (fresh + (uint64_t)mapping->slots > slots_of_class(mapping->bits)) {
                mapping->start = 0;
                return;
            }
        } while (!atomic_compare_exchange_weak(&class->fresh, &fresh, fresh + mapping->slots));
        mapping->start = tool_heap_slot(mapping->bits, fresh) - mapping->before;
    } while (!tool_map_at(mapping->start, mapping->size)); // the target has put something there
}

static void map_again(void *argument) {
    struct mapping *mapping = argument;
    if (!tool_map_at(mapping->start, mapping->size))
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
    unsigned bits = tool_heap_bits(slot);
    return (slot - tool_heap_slot(bits, 0)) >> bits;
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
    points_lock();
    struct class *class = &classes[bits]; // what is left of the segment before is lost
    class->next = number_of(mapping.start) + 1;
    class->end = class->next + (uint32_t)((size - MARGIN) >> bits) - 1;
    points_unlock();
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
    return tool_heap_slot(bits, number);
}

static void note_use(unsigned bits, uint32_t number) {
    if (number >= dhat_header->notes[bits])
        dhat_header->notes[bits] = number + 1;
}

// Returns with the lock held if there is a slot.
static struct slot take_slot(unsigned bits) {
    struct class *class = &classes[bits];
    do {
        points_lock();
        struct slot slot = {take_free(bits), bits >= GIVE_BACK_BITS};
        if (!slot.start && class->next < class->end) {
            slot = (struct slot){tool_heap_slot(bits, class->next), true};
            note_use(bits, class->next++);
        }
        if (LIKELY(slot.start))
            return slot;
        points_unlock();
    } while (extend(bits));
    return (struct slot){0};
}

// A slot that is mapped singly has a page more on either side; the one in front is the last of the
// slot before, which is never full.
static uint64_t mapped_size(uint64_t size) {
    return ((size + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + 2 * PAGE;
}

// The same.
static struct slot take_mapping(unsigned bits, uint64_t size) {
    struct mapping mapping = {.bits = bits, .slots = 1, .before = PAGE, .size = mapped_size(size)};
    points_lock();
    uint64_t used = take_free(bits);
    points_unlock();
    mapping.start = used - PAGE;
    if (used)
        tool_with_vectors(map_again, &mapping);
    if (!used || !mapping.start)
        tool_with_vectors(map, &mapping);
    if (!mapping.start)
        return (struct slot){0};
    uint64_t start = mapping.start + PAGE;
    points_lock();
    note_use(bits, number_of(start));
    return (struct slot){start, true};
}

// Returns with the lock held if there is a slot.
static struct slot find_slot(size_t size, size_t alignment) {
    uint64_t most = (uint64_t)1 << TOOL_HEAP_MOST;
    if (size > most - 4 * PAGE || alignment > most)
        return (struct slot){0};
    unsigned bits = bits_for(size > alignment ? size : alignment);
    if (is_mapped_singly(bits) && mapped_size(size) > size_of_slot(bits))
        bits++;
    if (bits > TOOL_HEAP_MOST)
        return (struct slot){0};
    return is_mapped_singly(bits) ? take_mapping(bits, size) : take_slot(bits);
}

// What a block that has become smaller does not need any more.
static void release_rest(uint64_t start, uint64_t old_size, uint64_t size) {
    struct mapping rest = {.start = start - PAGE + mapped_size(size),
                           .size = mapped_size(old_size) - mapped_size(size)};
    if (is_mapped_singly(tool_heap_bits(start)) && rest.size)
        tool_with_vectors(unmap, &rest);
}

static void give_out_again(uint64_t start, unsigned bits) {
    uint32_t number = number_of(start);
    note_at(bits, number)->next = classes[bits].free;
    classes[bits].free = number + 1;
}

// The block is gone already. With the lock, which is free afterwards.
static void release(uint64_t start, uint64_t size) {
    unsigned bits = tool_heap_bits(start);
    if (UNLIKELY(bits >= GIVE_BACK_BITS)) {
        struct mapping mapping = {.start = start, .size = size_of_slot(bits)};
        points_unlock();
        if (is_mapped_singly(bits)) {
            mapping.start -= PAGE;
            mapping.size = mapped_size(size);
            tool_with_vectors(unmap, &mapping);
        } else {
            tool_with_vectors(give_back, &mapping);
        }
        points_lock();
    }
    give_out_again(start, bits);
    points_unlock();
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
    size = size ? size : 1;
    uint32_t point = dhat_mode == DHAT_HEAP ? point_here() : 0;
    struct slot slot = find_slot(size, alignment);
    if (UNLIKELY(!slot.start))
        return 0;
    struct dhat_note *note = note_of(slot.start);
    note_set_size(note, slot.start, size);
    note->point = point;
    note->counted_end = 0;
    for (unsigned i = 0; i < DHAT_LANES; i++)
        note->reads[i] = note->writes[i] = 0;
    if (point) {
        points_tick();
        block_made(note, slot.start);
    }
    points_unlock();
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
    if (!note_of(address))
        return;
    points_lock();
    struct dhat_note *note = note_of_block(address);
    if (UNLIKELY(!note)) {
        points_unlock();
        return;
    }
    uint64_t size = note->size;
    points_tick();
    if (note->point)
        block_gone(note, address);
    drop_counters(note, address);
    note_set_size(note, address, 0);
    release(address, size);
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
    to->born = from->born;
    for (unsigned i = 0; i < DHAT_LANES; i++) {
        to->reads[i] = from->reads[i];
        to->writes[i] = from->writes[i];
    }
}

// A block that grows moves.
uint64_t slots_resize(uint64_t address, size_t size) {
    struct dhat_note *note = note_of_block(address), *to = note;
    size = size ? size : 1;
    if (UNLIKELY(!note))
        return 0;
    bool grows = size > note->size;
    uint64_t block = address, old_size = note->size;
    points_lock();
    drop_counters(note, address);
    if (grows) {
        points_unlock();
        block = find_slot(size, 1).start;
        if (!block)
            return 0;
        points_unlock();
        copy(block, address, old_size);
        to = note_of(block);
        points_lock();
    }
    points_tick();
    if (note->point)
        block_resized(note, size);
    if (grows) {
        move_note(to, note);
        note_set_size(note, address, 0);
    }
    note_set_size(to, block, size);
    if (grows) {
        release(address, old_size);
    } else {
        points_unlock();
        release_rest(address, old_size, size);
    }
    return block;
}
