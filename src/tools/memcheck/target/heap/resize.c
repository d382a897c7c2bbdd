// realloc. General registers only.
//
// A block moves, so that pointers to where it was are found out. There is one exception. A program
// that adds a little to a large block again and again would copy it each time. Such a step moves
// the block once, to a slot with room for half its size. Further steps then grow it in place until
// the room is used up. All copies together cost a multiple of the block's last size.
#include "tools/memcheck/target/heap/heap.h"

#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/shadow/shadow.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    STEP_LEAST = 1024, // smaller blocks move
    STEP_PART = 4,     // a step adds no more than this part of the block
    ROOM_PART = 2,     // the room is this part of it
    PAGE = 4096,
};

static bool is_step(size_t old_size, size_t size) {
    return old_size >= STEP_LEAST && size > old_size && size - old_size <= old_size / STEP_PART;
}

static bool is_defined(uint64_t start, size_t size) {
    uint64_t bad;
    return shadow_check_defined(start, size, &bad) == SHADOW_FINE;
}

// The origin of memory that was merely allocated is who made the block, and that changes. Undefined
// bytes of before must keep their origin. A huge block remembers one earlier maker, for the bytes
// at its start. False: a copy must give tags to the bytes that keep their values (size).
static bool keep_origins(uint64_t address, const struct found_block *found, size_t size,
                         struct huge *after) {
    const struct huge *huge = found->huge;
    if (!shadow_watch || is_defined(address, size)) {
        if (after)
            after->older_size = 0;
        return true;
    }
    if (!after)
        return false;
    size_t older = huge->older_size < size ? huge->older_size : size;
    if (older && !is_defined(address + older, size - older))
        return false;
    after->older_at = older ? huge->older_at : huge->made_at;
    after->older_size = older ? older : size;
    return true;
}

// ---- in place ----------------------------------------------------------------------------------

static bool has_room_for(uint64_t address, const struct found_block *found, size_t size) {
    if (found->huge)
        return found->huge->has_room &&
               size + heap_options.red_zone <= found->huge->end - found->huge->block;
    uint64_t before =
        address - (found->slab->first + (uint64_t)found->slot * found->slab->slot_size);
    return atomic_load_explicit(&found->note->word, memory_order_relaxed) & NOTE_ROOM &&
           before + heap_need_of(size, LEAST_ALIGNMENT) <= found->slab->slot_size;
}

// As a free and an allocation, in everything that is counted. Options that want more of stacks than
// to keep them make the block move.
static bool grow(uint64_t address, const struct found_block *found, size_t size) {
    if (!heap_options.only_keep_made || !heap_options.only_keep_freed ||
        !has_room_for(address, found, size) ||
        !keep_origins(address, found, found->size, found->huge))
        return false;
    size_t old_size = found->size;
    if (found->huge) {
        found->huge->size = size;
        found->huge->made_at = heap_stack_of_new(size);
    } else {
        uint32_t word = atomic_load_explicit(&found->note->word, memory_order_relaxed);
        uint32_t grown = word - (uint32_t)old_size + (uint32_t)size;
        if (word_state(word) != BLOCK_LIVE || word_size(word) != old_size ||
            !atomic_compare_exchange_strong(&found->note->word, &word, grown))
            return false;
        found->note->made_at = heap_stack_of_new(size);
    }
    if (heap_options.malloc_fill >= 0)
        heap_fill(address + old_size, size - old_size, heap_options.malloc_fill);
    shadow_make_undefined(address + old_size, size - old_size);
    heap_add_to(&own_heap->counters->allocations, 1);
    heap_add_to(&own_heap->counters->bytes, size);
    heap_add_to(&own_heap->counters->frees, 1);
    heap_add_to(&own_heap->counters->freed_bytes, old_size);
    return true;
}

// ---- moving ------------------------------------------------------------------------------------

struct copy {
    uint64_t to, from;
    size_t size;
};

static void copy_content(void *argument) {
    struct copy copy = *(struct copy *)argument;
    shadow_copy(copy.to, copy.from, copy.size);
    __asm__ volatile("rep movsb" : "+D"(copy.to), "+S"(copy.from), "+c"(copy.size) : : "memory");
}

struct page_move {
    struct huge *to;
    const struct huge *from;
    size_t size; // of what both have
    bool done;
};

// Pages go from one mapping to the other, with their shadow, so that memory which was never touched
// costs nothing. The old block's content is zero from then on.
static void move_pages(void *argument) {
    struct page_move *move = argument;
    struct huge *to = move->to;
    uint64_t front = to->block - to->start, end = to->block + to->size;
    uint64_t size = (front + move->size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (front != move->from->block - move->from->start || size > to->end - to->start ||
        !tool_move_pages(to->start, move->from->start, size))
        return;
    shadow_make_noaccess(move->from->start, move->from->end - move->from->start);
    if (end > to->block + move->size)
        shadow_make_undefined(to->block + move->size, end - (to->block + move->size));
    shadow_make_noaccess(end, to->end - end);
    move->done = true;
}

static bool move_huge(uint64_t block, uint64_t address, const struct found_block *found,
                      size_t size) {
    union cell *cell = cell_of(block);
    struct page_move move = {.size = size, .from = found->huge};
    if (!found->huge || !cell->is_huge || heap_options.malloc_fill >= 0 ||
        !keep_origins(address, found, size, &cell->huge))
        return false;
    move.to = &cell->huge;
    tool_with_vectors(move_pages, &move);
    if (!move.done)
        cell->huge.older_size = 0;
    return move.done;
}

static uint64_t place(size_t size, size_t room) {
    struct placing placing = {.size = size, .room = room, .maker = HEAP_MALLOC};
    return heap_place(&placing);
}

// False: there is no block to resize, which is reported.
static bool find(uint64_t address, size_t size, struct found_block *found) {
    if (UNLIKELY(!heap_find_live(address, found))) {
        heap_report_bad_resize(address, size);
        return false;
    }
    if (UNLIKELY(found->maker != HEAP_MALLOC))
        heap_report_mismatch(address, HEAP_MALLOC);
    return true;
}

// Pages may move only where what lies behind the content may be anything.
static uint64_t copy_to(uint64_t block, uint64_t address, const struct found_block *found,
                        size_t size, bool may_move_pages) {
    struct copy copy = {block, address, size < found->size ? size : found->size};
    uint64_t fault;
    if (!may_move_pages || !move_huge(block, address, found, copy.size))
        tool_try(copy_content, &copy, &fault);
    heap_give_up(address, found);
    return block;
}

uint64_t heap_resize(uint64_t address, size_t size) {
    struct found_block found;
    if (!find(address, size, &found))
        return 0;
    bool step = is_step(found.size, size);
    if (step && own_heap && found.maker == HEAP_MALLOC && grow(address, &found, size))
        return address;
    uint64_t block = step ? place(size, size / ROOM_PART) : 0;
    if (!block && !(block = place(size, 0)))
        return 0;
    return copy_to(block, address, &found, size, true);
}

uint64_t heap_resize_aligned(uint64_t address, size_t size, size_t alignment, bool zeroed) {
    struct found_block found;
    if (!find(address, size, &found))
        return 0;
    uint64_t block = heap_allocate(size, alignment, HEAP_MALLOC, zeroed);
    return block ? copy_to(block, address, &found, size, false) : 0;
}
