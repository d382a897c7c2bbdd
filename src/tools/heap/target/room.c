// The allocator that stands in for the target's. What is known about blocks lies outside target
// memory, so that a target with errors harms nothing but itself.
//
// Small blocks come from slots of fixed classes, which are cut from large pieces and used again
// last in, first out; large ones have a mapping of their own. One lock: threads that allocate wait
// for each other. Nobody who holds it maps or unmaps memory: a fork takes it while it holds the
// engine's locks.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tools/heap/target/heap.h"

enum { PIECE = 1 << 20, LARGE = 1 << 18, CLASSES = 128, NO_CLASS = 255, LEAST_ALIGNMENT = 16 };
#define MOST (1ul << 45)

struct block {
    uint64_t address; // 0: none
    uint64_t size;
    uint64_t slot; // where its memory begins
    uint64_t room; // bytes of it
    unsigned class;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t *slots;
    size_t count, room;
} spare[CLASSES];
static uint64_t piece, piece_end;
static struct block *table; // open addressing
static size_t table_room, table_count;

void room_lock(void) {
    pthread_mutex_lock(&lock);
}

void room_unlock(void) {
    pthread_mutex_unlock(&lock);
}

// ---- the table ----

static size_t place_of(uint64_t address) {
    return (size_t)((address >> 4) * HASH_FACTOR >> 20) & (table_room - 1);
}

static struct block *find(uint64_t address) {
    if (!table_room || !address)
        return NULL;
    for (size_t i = place_of(address); table[i].address; i = (i + 1) & (table_room - 1))
        if (table[i].address == address)
            return &table[i];
    return NULL;
}

static void insert(const struct block *block) {
    size_t i = place_of(block->address);
    while (table[i].address)
        i = (i + 1) & (table_room - 1);
    table[i] = *block;
}

static bool make_room(void) {
    if (2 * (table_count + 1) < table_room)
        return true;
    struct block *old = table;
    size_t old_room = table_room, room = old_room ? 2 * old_room : 4096;
    struct block *made = calloc(room, sizeof *made);
    if (!made)
        return false;
    table = made;
    table_room = room;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].address)
            insert(&old[i]);
    free(old);
    return true;
}

// Those behind move up, so that no search ends too early.
static void take_out(struct block *block) {
    size_t hole = (size_t)(block - table), mask = table_room - 1;
    for (size_t i = (hole + 1) & mask; table[i].address; i = (i + 1) & mask) {
        size_t home = place_of(table[i].address);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            table[hole] = table[i];
            hole = i;
        }
    }
    table[hole].address = 0;
    table_count--;
}

// ---- slots ----

// Steps of 16 bytes up to 512, then eight for each doubling. The size of a class is its largest.
static unsigned class_of(uint64_t need, uint64_t *room) {
    uint64_t last = (need - 1) >> 4;
    if (last < 32) {
        *room = (last + 1) << 4;
        return (unsigned)last;
    }
    unsigned top = 63 - (unsigned)__builtin_clzll(last);
    uint64_t step = last >> (top - 3);
    *room = (step + 1) << (top - 3 + 4);
    return (top - 5) * 8 + (unsigned)(step - 8) + 32;
}

// A slot of a class, from what was given back or from the piece; 0: there is none.
static uint64_t take_small(unsigned class, uint64_t room, bool *is_fresh) {
    *is_fresh = !spare[class].count;
    if (spare[class].count)
        return spare[class].slots[--spare[class].count];
    if (piece_end - piece < room)
        return 0;
    piece += room;
    return piece - room;
}

// A slot that cannot be noted is lost.
static void give_slot(const struct block *block) {
    if (spare[block->class].count == spare[block->class].room) {
        size_t room = spare[block->class].room ? 2 * spare[block->class].room : 64;
        uint64_t *slots = realloc(spare[block->class].slots, room * sizeof *slots);
        if (!slots)
            return;
        spare[block->class].slots = slots;
        spare[block->class].room = room;
    }
    spare[block->class].slots[spare[block->class].count++] = block->slot;
}

// ---- contents ----

struct copy {
    uint64_t to, from;
    size_t size;
};

static void fill_with_zeros(void *argument) {
    struct copy it = *(struct copy *)argument;
    __asm__ volatile("rep stosb" : "+D"(it.to), "+c"(it.size) : "a"(0) : "memory");
}

static void copy_bytes(void *argument) {
    struct copy it = *(struct copy *)argument;
    __asm__ volatile("rep movsb" : "+D"(it.to), "+S"(it.from), "+c"(it.size) : : "memory");
}

// The target may have taken the right to write from pages of the heap.
static void change(tool_function *how, struct copy it) {
    uint64_t fault;
    tool_try(how, &it, &fault);
}

// ---- blocks ----

static uint64_t rounded(size_t size) {
    return ((size ? size : 1) + LEAST_ALIGNMENT - 1) & ~(uint64_t)(LEAST_ALIGNMENT - 1);
}

// With the lock. False: there is no slot.
static bool place(struct block *block, uint64_t need, size_t alignment, bool *is_fresh) {
    if (!block->slot) {
        block->class = class_of(need, &block->room);
        block->slot = take_small(block->class, block->room, is_fresh);
    }
    if (!block->slot || !make_room())
        return false;
    block->address = (block->slot + alignment - 1) & ~(uint64_t)(alignment - 1);
    insert(block);
    table_count++;
    return true;
}

static uint64_t allocate_large(struct block *block, uint64_t need, size_t alignment) {
    bool is_fresh;
    block->class = NO_CLASS;
    block->room = (need + 4095) & ~4095ul;
    block->slot = tool_map(block->room, alignment > 4096 ? alignment : 4096);
    room_lock();
    bool is_placed = block->slot && place(block, need, alignment, &is_fresh);
    room_unlock();
    if (block->slot && !is_placed)
        tool_unmap(block->slot, block->room);
    return is_placed ? block->address : 0;
}

static bool allocate_small(struct block *block, uint64_t need, size_t alignment, bool *is_fresh) {
    room_lock();
    bool is_placed = place(block, need, alignment, is_fresh);
    room_unlock();
    if (is_placed)
        return true;
    uint64_t fresh = tool_map(PIECE, 4096);
    if (!fresh)
        return false;
    // What is left of the piece before is given up.
    room_lock();
    piece = fresh;
    piece_end = fresh + PIECE;
    is_placed = place(block, need, alignment, is_fresh);
    room_unlock();
    return is_placed;
}

uint64_t room_allocate(size_t size, size_t alignment, bool zeroed) {
    struct block block = {.size = size};
    bool is_fresh;
    if (size > MOST || alignment > MOST)
        return 0;
    if (alignment < LEAST_ALIGNMENT)
        alignment = LEAST_ALIGNMENT;
    uint64_t need = rounded(size) + alignment - LEAST_ALIGNMENT;
    if (need > LARGE)
        return allocate_large(&block, need, alignment);
    if (!allocate_small(&block, need, alignment, &is_fresh))
        return 0;
    if (zeroed && !is_fresh)
        change(fill_with_zeros, (struct copy){.to = block.address, .size = size});
    return block.address;
}

bool room_find(uint64_t address, size_t *size) {
    room_lock();
    struct block *block = find(address);
    if (block)
        *size = block->size;
    room_unlock();
    return block;
}

bool room_free(uint64_t address, size_t *size) {
    struct block block = {0};
    room_lock();
    struct block *found = find(address);
    if (found) {
        block = *found;
        take_out(found);
        if (block.class != NO_CLASS)
            give_slot(&block);
    }
    room_unlock();
    *size = block.size;
    if (found && block.class == NO_CLASS)
        tool_unmap(block.slot, block.room);
    return found;
}

uint64_t room_resize(uint64_t address, size_t size, size_t alignment, bool zeroed) {
    room_lock();
    struct block *block = find(address);
    size_t old = block ? block->size : 0;
    bool fits = block && rounded(size) <= block->room - (block->address - block->slot) &&
                (!alignment || address % alignment == 0);
    if (fits)
        block->size = size;
    room_unlock();
    if (fits && zeroed && size > old)
        change(fill_with_zeros, (struct copy){.to = address + old, .size = size - old});
    if (fits || !block)
        return block ? address : 0;
    uint64_t moved = room_allocate(size, alignment, zeroed);
    if (!moved)
        return 0;
    change(copy_bytes, (struct copy){moved, address, old < size ? old : size});
    room_free(address, &old);
    return moved;
}
