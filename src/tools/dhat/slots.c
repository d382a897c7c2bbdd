// The allocator that stands in for the target's own, as Valgrind's does. General registers only.
//
// Slots are never divided or joined; each has its note for good, and the maps that lead from
// addresses to notes are written when a slot is used first. Freed slots are given out again, the
// last one first. Small slots come from segments; those of whole pages lie in the upper half of the
// heap.
#include <stdatomic.h>
#include <sys/mman.h>

#include "tools/dhat/dhat.h"

enum {
    PAGE = 4096,
    SEGMENT = 4 << 20,
    SMALL_MOST = 32 << 10,
    CLASSES = 169,         // class 0: a mapping of its own
    CLASS_MOST = 64 << 20, // bytes
    GIVE_BACK = 1 << 20,   // of this size and more, memory of free slots is given back
    LEAST_ALIGNMENT = 16,
};

static uint32_t free_slots[CLASSES];
// What is left of the current segment, of small slots and of large ones.
static struct area {
    uint64_t next, end;
    _Atomic uint64_t fresh; // not mapped from here on
    uint64_t limit;
} areas[2] = {{.fresh = TOOL_HEAP_START + SEGMENT, .limit = TOOL_HEAP_LARGE},
              {.fresh = TOOL_HEAP_LARGE, .limit = TOOL_HEAP_END}};

uint64_t slots_large_used(void) {
    return areas[1].fresh - TOOL_HEAP_LARGE;
}

// Steps of 16 bytes up to 512, then eight for each doubling.
static unsigned class_of(uint64_t need) {
    uint64_t last = (need - 1) >> 4;
    if (last < 32)
        return last + 1;
    unsigned top = 63 - __builtin_clzll(last);
    return (top - 5) * 8 + (last >> (top - 3)) + 25;
}

static uint64_t class_size(unsigned class) {
    if (class <= 32)
        return 16ul * class;
    unsigned step = (class - 33) / 8 + 2, part = (class - 33) % 8 + 9;
    return (uint64_t)part << step << 4;
}

// ---- memory ------------------------------------------------------------------------------------

struct mapping {
    struct area *area;
    uint64_t size, start; // start 0: none
};

static void map(void *argument) {
    struct mapping *mapping = argument;
    uint64_t fresh;
    do {
        fresh = atomic_fetch_add(&mapping->area->fresh, mapping->size);
        if (fresh + mapping->size > mapping->area->limit) {
            mapping->start = 0;
            return;
        }
    } while (!tool_map_at(fresh, mapping->size)); // the target has put something there
    mapping->start = fresh;
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

// Without the lock. False: no memory.
static bool extend(struct area *area, uint64_t size) {
    // Programs read a little beyond their blocks, and get away with it natively.
    uint64_t margin = size > SMALL_MOST ? PAGE : 64;
    uint64_t rounded = (size + 2 * margin + SEGMENT - 1) & ~(uint64_t)(SEGMENT - 1);
    struct mapping mapping = {area, rounded, 0};
    tool_with_vectors(map, &mapping);
    if (!mapping.start)
        return false;
    points_lock();
    area->next = mapping.start + margin; // what is left of the segment before is lost
    area->end = mapping.start + rounded - margin;
    points_unlock();
    return true;
}

// ---- slots -------------------------------------------------------------------------------------

static uint32_t new_note(unsigned class) {
    uint64_t number = dhat_header->note_units;
    if (number + DHAT_NOTE > DHAT_NOTE_UNITS)
        return 0;
    dhat_header->note_units = number + DHAT_NOTE;
    note_at(number)->class = class;
    return number;
}

static void write_map(uint64_t start, uint64_t size, uint32_t number) {
    unsigned bits = start >= TOOL_HEAP_LARGE ? 12 : 4;
    uint32_t *entries = (uint32_t *)TOOL_HEAP_NOTES + (start >> bits);
    for (uint64_t i = 0; i < size >> bits; i++)
        entries[i] = number;
}

struct slot {
    uint32_t number;
    uint64_t start; // of the slot
    bool is_zero;
};

// With the lock; false: the area must be extended. number 0: out of notes.
static bool take_slot(unsigned class, struct slot *slot) {
    uint64_t size = class_size(class);
    struct area *area = &areas[size > SMALL_MOST];
    slot->number = free_slots[class];
    if (slot->number) {
        struct dhat_note *note = note_at(slot->number);
        free_slots[class] = note->next;
        slot->start = note->start;
        slot->is_zero = size >= GIVE_BACK;
        return true;
    }
    if (area->end - area->next < size)
        return false;
    slot->number = new_note(class);
    slot->start = area->next;
    slot->is_zero = true;
    if (slot->number) {
        area->next += size;
        write_map(slot->start, size, slot->number);
    }
    return true;
}

// A mapping of its own; a place that was used before if one fits well.
static void take_mapping(uint64_t size, struct slot *slot) {
    uint64_t pages = (size + PAGE - 1) / PAGE;
    slot->is_zero = true;
    points_lock();
    uint32_t *link = &free_slots[0];
    while (*link && (note_at(*link)->pages < pages || note_at(*link)->pages > 2 * pages))
        link = &note_at(*link)->next;
    slot->number = *link;
    if (*link)
        *link = note_at(*link)->next;
    points_unlock();
    struct mapping mapping = {&areas[1], pages * PAGE, 0};
    if (slot->number) {
        mapping.start = note_at(slot->number)->start;
        mapping.size = (uint64_t)note_at(slot->number)->pages * PAGE;
        tool_with_vectors(map_again, &mapping);
        slot->start = mapping.start;
        if (!mapping.start)
            slot->number = 0;
        return;
    }
    mapping.size = (mapping.size + 2 * PAGE + SEGMENT - 1) & ~(uint64_t)(SEGMENT - 1);
    tool_with_vectors(map, &mapping);
    points_lock();
    slot->number = mapping.start ? new_note(0) : 0;
    points_unlock();
    slot->start = mapping.start + PAGE;
    if (slot->number) {
        note_at(slot->number)->pages = mapping.size / PAGE - 2;
        write_map(slot->start, mapping.size - 2 * PAGE, slot->number);
    }
}

// With the lock. The start in the note is the slot's own again.
static void put_slot(uint32_t number, uint64_t slot_start) {
    struct dhat_note *note = note_at(number);
    note->size = note->counted = 0;
    note->start = slot_start;
    note->next = free_slots[note->class];
    free_slots[note->class] = number;
}

// Where the slot of a block begins: blocks of larger alignment may begin further in.
static uint64_t slot_start(uint32_t number, uint64_t block) {
    unsigned bits = block >= TOOL_HEAP_LARGE ? 12 : 4;
    const uint32_t *entries = (const uint32_t *)TOOL_HEAP_NOTES;
    uint64_t at = block >> bits;
    while (entries[at - 1] == number)
        at--;
    return at << bits;
}

// ---- blocks ------------------------------------------------------------------------------------

static bool find_slot(size_t size, size_t alignment, struct slot *slot) {
    if (size > (uint64_t)1 << 38 || alignment > (uint64_t)1 << 30)
        return false;
    uint64_t need = size + (alignment > LEAST_ALIGNMENT ? alignment - LEAST_ALIGNMENT : 0);
    if (need > CLASS_MOST) {
        take_mapping(need, slot);
        return slot->number;
    }
    unsigned class = class_of(need);
    for (;;) {
        points_lock();
        bool is_done = take_slot(class, slot);
        points_unlock();
        if (is_done)
            return slot->number;
        if (!extend(&areas[class_size(class) > SMALL_MOST], class_size(class)))
            return false;
    }
}

static void fill(uint64_t start, size_t size) {
    __asm__ volatile("rep stosb" : "+D"(start), "+c"(size) : "a"(0) : "memory");
}

uint64_t slots_allocate(size_t size, size_t alignment, bool zeroed) {
    struct slot slot;
    size = size ? size : 1;
    uint32_t point = dhat_mode == DHAT_HEAP ? point_here() : 0;
    if (UNLIKELY(!find_slot(size, alignment, &slot)))
        return 0;
    if (alignment < LEAST_ALIGNMENT)
        alignment = LEAST_ALIGNMENT;
    uint64_t block = (slot.start + alignment - 1) & ~(uint64_t)(alignment - 1);
    if (zeroed && !slot.is_zero)
        fill(block, size);
    struct dhat_note *note = note_at(slot.number);
    points_lock();
    note->start = block;
    note->size = size;
    note->point = point;
    note->counted = 0;
    for (unsigned i = 0; i < DHAT_LANES; i++)
        note->reads[i] = note->writes[i] = 0;
    if (point) {
        points_tick();
        block_made(note);
    }
    points_unlock();
    return block;
}

static bool is_block(uint32_t number, uint64_t address) {
    return number && note_at(number)->start == address && note_at(number)->size;
}

static void release(uint32_t number, uint64_t block) {
    struct dhat_note *note = note_at(number);
    uint64_t start = slot_start(number, block);
    struct mapping mapping = {.start = start};
    mapping.size = note->class ? class_size(note->class) : (uint64_t)note->pages * PAGE;
    if (!note->class)
        tool_with_vectors(unmap, &mapping);
    else if (mapping.size >= GIVE_BACK)
        tool_with_vectors(give_back, &mapping);
    points_lock();
    put_slot(number, start);
    points_unlock();
}

// What is no block is left alone.
void slots_free(uint64_t address) {
    uint32_t number = note_number(address);
    if (!number)
        return;
    points_lock();
    struct dhat_note *note = note_at(number);
    bool is_one = is_block(number, address);
    if (is_one) {
        points_tick();
        if (note->point)
            block_gone(note);
        note->size = note->counted = 0;
    }
    points_unlock();
    if (is_one)
        release(number, address);
}

size_t slots_size_of(uint64_t address) {
    uint32_t number = note_number(address);
    return is_block(number, address) ? note_at(number)->size : 0;
}

static void copy(uint64_t to, uint64_t from, size_t size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void drop_counters(struct dhat_note *note) {
    uint16_t *counters = counters_of(note->start);
    for (size_t i = 0; i < note->counted; i++)
        counters[i] = 0;
    note->counted = 0;
}

// A block that grows moves to another slot, and its note's contents with it.
uint64_t slots_resize(uint64_t address, size_t size) {
    uint32_t number = note_number(address);
    struct slot slot;
    size = size ? size : 1;
    if (UNLIKELY(!is_block(number, address)))
        return 0;
    struct dhat_note *note = note_at(number), *to = note;
    bool grows = size > note->size;
    uint64_t block = address;
    drop_counters(note);
    if (grows) {
        if (!find_slot(size, LEAST_ALIGNMENT, &slot))
            return 0;
        block = slot.start;
        copy(block, address, note->size);
        to = note_at(slot.number);
    }
    points_lock();
    points_tick();
    if (note->point)
        block_resized(note, size);
    note->size = grows ? 0 : size;
    if (grows) {
        to->start = block;
        to->point = note->point;
        to->born = note->born;
        for (unsigned i = 0; i < DHAT_LANES; i++) {
            to->reads[i] = note->reads[i];
            to->writes[i] = note->writes[i];
        }
        to->counted = 0;
        to->size = size;
    }
    points_unlock();
    if (grows)
        release(number, address);
    return block;
}
