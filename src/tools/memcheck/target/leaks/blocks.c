#include "tools/memcheck/target/leaks/search.h"

#include "base/search.h"
#include "tools/memcheck/target/heap/pools.h"

enum { DIRECTORY = 1024 };

// ---- shelves -----------------------------------------------------------------------------------

static bool add_shelf(struct leak_blocks *blocks, struct leak_shelf shelf, uint32_t count) {
    if (count > MOST_BLOCKS - blocks->count)
        return false;
    shelf.number = blocks->count;
    if (blocks->shelves)
        blocks->shelves[blocks->shelf_count] = shelf;
    blocks->shelf_count++;
    blocks->count += count;
    return true;
}

static bool add_segment(struct leak_blocks *blocks, const struct segment *segment) {
    for (unsigned unit = 0; unit < UNITS;) {
        struct slab *slab = slab_of(segment, segment->start + ((uint64_t)unit << UNIT_BITS));
        unit += slab ? slab->units : 1;
        if (!slab)
            continue;
        slab->number = blocks->count;
        if (!add_shelf(blocks, (struct leak_shelf){.slab = slab}, slab->count))
            return false;
    }
    return true;
}

// Only counts as long as there is no room for shelves.
static bool add_shelves(struct leak_blocks *blocks) {
    uint64_t number, last;
    bool ok = true;
    cells_in_use(&number, &last);
    blocks->shelf_count = blocks->count = 0;
    for (union cell *before = NULL, *cell; ok && number <= last; number++, before = cell) {
        cell = atomic_load(&heap_cells[number]);
        if (!cell || cell == before)
            continue;
        if (!cell->is_huge) {
            ok = add_segment(blocks, &cell->segment);
        } else {
            cell->huge.number = blocks->count;
            ok = add_shelf(blocks, (struct leak_shelf){.is_huge = true, .huge = &cell->huge}, 1);
        }
    }
    return ok;
}

static bool make_directory(struct leak_blocks *blocks) {
    blocks->directory = search_map((blocks->count / DIRECTORY + 2) * sizeof *blocks->directory);
    if (!blocks->directory)
        return false;
    for (uint32_t i = 0, at = 0; at <= blocks->count / DIRECTORY; at++) {
        while (i + 1 < blocks->shelf_count && blocks->shelves[i + 1].number <= at * DIRECTORY)
            i++;
        blocks->directory[at] = i;
    }
    blocks->directory[blocks->count / DIRECTORY + 1] =
        blocks->shelf_count ? blocks->shelf_count - 1 : 0;
    return true;
}

static const struct leak_shelf *shelf_of(const struct leak_blocks *blocks, uint32_t number) {
    uint32_t first = blocks->directory[number / DIRECTORY];
    uint32_t last = blocks->directory[number / DIRECTORY + 1];
    const struct leak_shelf *shelves = blocks->shelves;
    return &shelves[search_first(at, first + 1, last + 1, shelves[at].number > number) - 1];
}

// ---- blocks of the heap ------------------------------------------------------------------------

static bool get_huge(const struct huge *huge, struct leak_block *block) {
    *block = (struct leak_block){
        .start = huge->block, .size = huge->size, .number = huge->number, .stack = huge->made_at};
    return atomic_load_explicit(&huge->state, memory_order_relaxed) == BLOCK_LIVE;
}

static bool get_slot(const struct slab *slab, uint32_t slot, struct leak_block *block) {
    if (slot >= slab->count)
        return false;
    const struct block_note *note = &slab->notes[slot];
    uint32_t word = atomic_load_explicit(&note->word, memory_order_relaxed);
    *block = (struct leak_block){.start = slot_block(slab, slot, word_alignment(word)),
                                 .size = word_size(word),
                                 .number = slab->number + slot,
                                 .stack = note->made_at};
    return word_state(word) == BLOCK_LIVE;
}

static bool is_dropped(const struct leak_blocks *blocks, uint32_t number) {
    return blocks->states[number] & STATE_DROPPED;
}

static bool next_in_heap(const struct leak_blocks *blocks, struct leak_walk *walk,
                         struct leak_block *block) {
    for (; walk->shelf < blocks->shelf_count; walk->shelf++, walk->slot = 0) {
        const struct leak_shelf *shelf = &blocks->shelves[walk->shelf];
        uint32_t count = shelf->is_huge ? 1 : shelf->slab->count;
        for (; walk->slot < count; walk->slot++)
            if ((shelf->is_huge ? get_huge(shelf->huge, block)
                                : get_slot(shelf->slab, walk->slot, block)) &&
                !is_dropped(blocks, block->number))
                return true;
    }
    return false;
}

// Of two that start together, the larger first: it may contain the other. Then what the heap has.
static bool is_before(const struct leak_block *a, bool a_declared, const struct leak_block *b,
                      bool b_declared) {
    if (a->start != b->start)
        return a->start < b->start;
    if (a->size != b->size)
        return a->size > b->size;
    return b_declared && !a_declared;
}

bool blocks_next(const struct leak_blocks *blocks, struct leak_walk *walk,
                 struct leak_block *block) {
    const struct leak_declared *declared =
        walk->declared < blocks->declared_count ? &blocks->declared[walk->declared] : NULL;
    bool in_heap = next_in_heap(blocks, walk, block);
    if (in_heap && (!declared || is_before(block, false, &declared->block, true))) {
        walk->slot++;
        return true;
    }
    if (declared) {
        walk->declared++;
        *block = declared->block;
    }
    return declared != NULL;
}

// ---- what was declared -------------------------------------------------------------------------

bool blocks_add(struct leak_blocks *blocks, uint64_t start, uint64_t size, uint32_t stack) {
    if (blocks->declared_count == blocks->declared_room)
        return false;
    blocks->declared[blocks->declared_count++].block =
        (struct leak_block){.start = start, .size = size, .stack = stack};
    return true;
}

static void swap(struct leak_declared *a, struct leak_declared *b) {
    struct leak_declared other = *a;
    *a = *b;
    *b = other;
}

static bool declared_before(const struct leak_declared *a, const struct leak_declared *b) {
    return is_before(&a->block, true, &b->block, true);
}

static void sift_down(struct leak_declared *all, size_t at, size_t count) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && declared_before(&all[child], &all[child + 1]))
            child++;
        if (!declared_before(&all[at], &all[child]))
            return;
        swap(&all[at], &all[child]);
    }
}

// They come in order; only pools put others behind them.
static void sort(struct leak_declared *all, size_t count) {
    bool in_order = true;
    for (size_t i = 1; in_order && i < count; i++)
        in_order = !declared_before(&all[i], &all[i - 1]);
    if (in_order)
        return;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(all, i, count);
    for (size_t end = count; end-- > 1;) {
        swap(&all[0], &all[end]);
        sift_down(all, 0, end);
    }
}

static bool is_declared(const struct leak_blocks *blocks, const struct leak_block *block) {
    return block->number >= blocks->first_declared;
}

static void drop(struct leak_blocks *blocks, const struct leak_block *block) {
    if (is_declared(blocks, block))
        blocks->declared[block->number - blocks->first_declared].is_dropped = true;
    else
        blocks->states[block->number] = STATE_DROPPED;
}

// A block that others are carved from does not count: they do. What else overlaps is the target's
// mistake, and the later one loses.
static void drop_overlaps(struct leak_blocks *blocks) {
    struct leak_walk walk = {0};
    struct leak_block block, last = {0};
    for (bool is_first = true; blocks_next(blocks, &walk, &block); is_first = false) {
        if (!is_first && block_end(&last) > block.start) {
            if (!is_declared(blocks, &block) || block_end(&last) < block_end(&block)) {
                drop(blocks, &block);
                continue;
            }
            drop(blocks, &last);
        }
        last = block;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < blocks->declared_count; i++)
        if (!blocks->declared[i].is_dropped)
            swap(&blocks->declared[kept++], &blocks->declared[i]);
    blocks->declared_count = kept;
}

static void number_declared(struct leak_blocks *blocks) {
    for (uint32_t i = 0; i < blocks->declared_count; i++)
        blocks->declared[i].block.number = blocks->first_declared + i;
}

// How many there are, for room.
static size_t count_declared(void) {
    struct heap_block block;
    size_t count = pools_chunk_count();
    for (uint64_t at = 0; declared_next(at, &block); at = block.start + 1)
        count++;
    return count;
}

static bool collect_declared(struct leak_blocks *blocks, size_t room) {
    struct heap_block block;
    blocks->declared = search_map(room * sizeof *blocks->declared);
    blocks->declared_room = room;
    if (!blocks->declared)
        return false;
    for (uint64_t at = 0; declared_next(at, &block); at = block.start + 1)
        blocks_add(blocks, block.start, block.size, block.made_at);
    pools_add_chunks(blocks);
    sort(blocks->declared, blocks->declared_count);
    return true;
}

// Of which the start is not above the address; NULL: none.
static const struct leak_declared *find_declared(const struct leak_blocks *blocks,
                                                 uint64_t address) {
    size_t behind =
        search_first(at, 0, blocks->declared_count, blocks->declared[at].block.start > address);
    return behind ? &blocks->declared[behind - 1] : NULL;
}

// ---- all ---------------------------------------------------------------------------------------

static void find_bounds(struct leak_blocks *blocks) {
    struct leak_walk walk = {0};
    struct leak_block block;
    uint64_t highest = 0;
    blocks->lowest = UINT64_MAX;
    while (blocks_next(blocks, &walk, &block)) {
        blocks->lowest = block.start < blocks->lowest ? block.start : blocks->lowest;
        highest = block_end(&block);
    }
    blocks->span = blocks->lowest < highest ? highest - blocks->lowest : 0;
}

bool blocks_collect(struct leak_blocks *blocks) {
    size_t declared = count_declared();
    if (!add_shelves(blocks) || declared > MOST_BLOCKS - blocks->count)
        return false;
    blocks->shelves = search_map(blocks->shelf_count * sizeof *blocks->shelves);
    if (!blocks->shelves)
        return false;
    add_shelves(blocks);
    blocks->first_declared = blocks->count;
    blocks->states = search_map(blocks->count + declared);
    if (!blocks->states || !make_directory(blocks) || !collect_declared(blocks, declared))
        return false;
    number_declared(blocks);
    if (blocks->declared_count)
        drop_overlaps(blocks);
    number_declared(blocks);
    blocks->count += blocks->declared_count;
    find_bounds(blocks);
    return true;
}

void blocks_free(struct leak_blocks *blocks) {
    uint32_t in_heap = blocks->first_declared;
    search_unmap(blocks->states, in_heap + blocks->declared_room);
    search_unmap(blocks->shelves, blocks->shelf_count * sizeof *blocks->shelves);
    search_unmap(blocks->directory, (in_heap / DIRECTORY + 2) * sizeof *blocks->directory);
    search_unmap(blocks->declared, blocks->declared_room * sizeof *blocks->declared);
}

// ---- by address --------------------------------------------------------------------------------

void lookup_cell(struct leak_lookup *lookup, uint64_t address) {
    lookup->cell = cell_of(address);
    if (lookup->cell && !lookup->cell->is_huge)
        __builtin_prefetch(&lookup->cell->segment.slabs[(address >> UNIT_BITS) % UNITS]);
}

void lookup_slab(struct leak_lookup *lookup, uint64_t address) {
    bool in_slab = lookup->cell && !lookup->cell->is_huge;
    lookup->slab = in_slab ? slab_of(&lookup->cell->segment, address) : NULL;
    if (lookup->slab)
        __builtin_prefetch(lookup->slab);
}

static void fetch_slot(const struct leak_blocks *blocks, const struct leak_lookup *lookup) {
    __builtin_prefetch(&lookup->slab->notes[lookup->slot]);
    __builtin_prefetch(&blocks->states[lookup->slab->number + lookup->slot], 1);
}

void lookup_slot(const struct leak_blocks *blocks, struct leak_lookup *lookup, uint64_t address) {
    if (!lookup->slab)
        return;
    lookup->slot = slot_of(lookup->slab, address);
    fetch_slot(blocks, lookup);
}

static bool is_inside(uint64_t address, const struct leak_block *block) {
    return address >= block->start && address < block_end(block);
}

bool lookup_block(const struct leak_blocks *blocks, const struct leak_lookup *lookup,
                  uint64_t address, struct leak_block *block) {
    if (blocks->declared_count) {
        const struct leak_declared *declared = find_declared(blocks, address);
        if (declared && is_inside(address, &declared->block)) {
            *block = declared->block;
            return true;
        }
    }
    if (!lookup->cell)
        return false;
    bool is_live = lookup->cell->is_huge
                       ? get_huge(&lookup->cell->huge, block)
                       : lookup->slab && get_slot(lookup->slab, lookup->slot, block);
    return is_live && is_inside(address, block) && !is_dropped(blocks, block->number);
}

bool blocks_find(const struct leak_blocks *blocks, uint64_t address, struct leak_block *block) {
    struct leak_lookup lookup;
    if (address - blocks->lowest >= blocks->span)
        return false;
    lookup_cell(&lookup, address);
    lookup_slab(&lookup, address);
    lookup_slot(blocks, &lookup, address);
    return lookup_block(blocks, &lookup, address, block);
}

// ---- by number ---------------------------------------------------------------------------------

void blocks_locate(const struct leak_blocks *blocks, uint32_t number, struct leak_lookup *lookup) {
    *lookup = (struct leak_lookup){NULL, NULL, 0};
    if (number >= blocks->first_declared)
        return;
    const struct leak_shelf *shelf = shelf_of(blocks, number);
    if (shelf->is_huge) {
        lookup->cell = (const union cell *)shelf->huge;
        return;
    }
    lookup->slab = shelf->slab;
    lookup->slot = number - shelf->number;
    fetch_slot(blocks, lookup);
}

void blocks_get(const struct leak_blocks *blocks, uint32_t number, const struct leak_lookup *lookup,
                struct leak_block *block) {
    if (number >= blocks->first_declared)
        *block = blocks->declared[number - blocks->first_declared].block;
    else if (lookup->slab)
        get_slot(lookup->slab, lookup->slot, block);
    else
        get_huge(&lookup->cell->huge, block);
}
