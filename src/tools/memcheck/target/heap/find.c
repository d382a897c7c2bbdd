// The heap as others see it: options, blocks by address, lists, totals.
#include <stdlib.h>
#include <string.h>

#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/functions/collectors.h"
#include "tools/memcheck/target/heap/sites.h"
#include "tools/memcheck/target/shadow/frames.h"
#include "tools/shared/stacks.h"

// ---- options and events ------------------------------------------------------------------------

static uint64_t number_of(const char *name, uint64_t otherwise, int base) {
    const char *value = tool_option(name);
    return value && *value ? strtoul(value, NULL, base) : otherwise;
}

static bool is_no(const char *name) {
    const char *value = tool_option(name);
    return value && strcmp(value, "no") == 0;
}

static bool is_yes(const char *name) {
    const char *value = tool_option(name);
    return value && strcmp(value, "yes") == 0;
}

static void read_stack_options(void) {
    const char *kept = tool_option("keep-stacktraces");
    if (!kept || !*kept)
        kept = "alloc-and-free";
    heap_options.keep_made = strncmp(kept, "alloc", 5) == 0;
    heap_options.keep_freed = strstr(kept, "free");
    heap_options.freed_over_made = strcmp(kept, "alloc-then-free") == 0;
    heap_options.only_keep_made = heap_options.keep_made && !sites_wanted;
    heap_options.only_keep_freed =
        heap_options.keep_freed && !heap_options.freed_over_made && !sites_wanted;
}

enum { SYMBOLS = 256 };

struct tool_symbol heap_symbols[SYMBOLS];

static size_t add_symbols(size_t at, const struct tool_symbol *symbols) {
    while (symbols->name && at < SYMBOLS - 1)
        heap_symbols[at++] = *symbols++;
    return at;
}

enum { BATCH_PART = 64 }; // a batch of blocks that leave the quarantine is this part of its volume

static void set_freed_volume(uint64_t volume) {
    heap_options.freed_volume = volume;
    heap_options.batch_volume = volume + volume / BATCH_PART;
}

void heap_start(void) {
    heap_options.red_zone = number_of("redzone-size", 16, 0);
    heap_options.may_be_narrow = !is_yes("redzone-asked");
    heap_options.alignment = number_of("alignment", LEAST_ALIGNMENT, 0);
    if (heap_options.alignment < LEAST_ALIGNMENT)
        heap_options.alignment = LEAST_ALIGNMENT;
    heap_options.front = (heap_options.red_zone + LEAST_ALIGNMENT - 1) & ~(LEAST_ALIGNMENT - 1ul);
    set_freed_volume(number_of("freelist-vol", 20000000, 0));
    heap_options.large = number_of("freelist-big-blocks", 1000000, 0);
    heap_options.malloc_fill = number_of("malloc-fill", -1, 16);
    heap_options.free_fill = number_of("free-fill", -1, 16);
    heap_options.mismatches = !is_no("show-mismatched-frees");
    heap_options.resizes_to_zero = !is_no("show-realloc-size-zero");
    heap_options.resize_to_zero_frees = !is_no("realloc-zero-bytes-frees");
    read_stack_options();
    if (heap_options.large >= heap_options.freed_volume && number_of("verbosity", 0, 10) == 0 &&
        !is_yes("xml"))
        tool_say("Warning: --freelist-big-blocks value %lu has no effect\n"
                 "as it is >= to --freelist-vol value %lu",
                 heap_options.large, heap_options.freed_volume);
    segments_start();
    stacks_start();
    size_t count = entry_symbols(heap_symbols);
    count = add_symbols(count, frame_symbols);
    count = add_symbols(count, collector_symbols);
    add_symbols(count, string_symbols);
}

void heap_change_option(const char *name, const char *value) {
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    bool is_number = *value && !*end;
    if (strcmp(name, "freelist-vol") == 0 && is_number)
        set_freed_volume(number);
    else if (strcmp(name, "freelist-big-blocks") == 0 && is_number)
        heap_options.large = number;
    else if (strcmp(name, "show-mismatched-frees") == 0)
        heap_options.mismatches = strcmp(value, "no") != 0;
    else if (strcmp(name, "show-realloc-size-zero") == 0)
        heap_options.resizes_to_zero = strcmp(value, "no") != 0;
}

void heap_forking(void) {
    segments_lock();
    declared_lock();
}

void heap_fork_made(void) {
    declared_unlock();
    segments_unlock();
}

void heap_forked(void) {
    segments_forked();
    declared_forked();
}

// ---- blocks by address -------------------------------------------------------------------------

static bool describe_huge(const struct huge *huge, struct heap_block *block) {
    enum block_state state = atomic_load(&huge->state);
    *block = (struct heap_block){.start = huge->block,
                                 .size = huge->size,
                                 .state = state == BLOCK_LIVE ? HEAP_LIVE : HEAP_FREED,
                                 .maker = huge->maker,
                                 .made_at = huge->made_at,
                                 .freed_at = huge->freed_at,
                                 .alignment = huge->alignment};
    return state != BLOCK_NONE;
}

static bool describe_slot(const struct slab *slab, int64_t slot, struct heap_block *block) {
    if (slot < 0 || slot >= slab->count)
        return false;
    const struct block_note *note = &slab->notes[slot];
    uint32_t word = atomic_load(&note->word);
    if (word_state(word) == BLOCK_NONE)
        return false;
    bool is_live = word_state(word) == BLOCK_LIVE;
    size_t alignment = word_alignment(word);
    *block = (struct heap_block){.start = slot_block(slab, slot, alignment),
                                 .size = word_size(word),
                                 .state = is_live ? HEAP_LIVE : HEAP_FREED,
                                 .maker = word_maker(word),
                                 .made_at = note->made_at,
                                 .freed_at = is_live ? 0 : slab->freed_at[slot],
                                 .alignment = alignment};
    return true;
}

// How far an address is from a block: 0 inside it. One byte more before it than after it, so that
// an address just between two blocks counts as after the first.
static uint64_t distance(uint64_t address, const struct heap_block *block) {
    if (address < block->start)
        return 2 * (block->start - address);
    if (address < block->start + block->size)
        return 0;
    return 2 * (address - (block->start + block->size)) + 1;
}

static bool is_nearer(uint64_t address, const struct heap_block *a, const struct heap_block *b) {
    uint64_t to_a = distance(address, a), to_b = distance(address, b);
    if (to_a && to_b && a->state != b->state)
        return a->state == HEAP_LIVE;
    return to_a < to_b;
}

static bool find_in_slab(const struct slab *slab, uint64_t address, struct heap_block *block) {
    int64_t slot = slot_of(slab, address);
    bool is_found = false;
    for (int64_t near = slot - 1; near <= slot + 1; near++) {
        struct heap_block other;
        if (describe_slot(slab, near, &other) && (!is_found || is_nearer(address, &other, block))) {
            *block = other;
            is_found = true;
        }
    }
    return is_found;
}

bool heap_find(uint64_t address, struct heap_block *block) {
    if (declared_find(address, block))
        return true;
    union cell *cell = cell_of(address);
    if (!cell || address < cell->start || address >= cell->end)
        return false;
    if (cell->is_huge)
        return describe_huge(&cell->huge, block);
    struct slab *slab = slab_of(&cell->segment, address);
    return slab && find_in_slab(slab, address, block);
}

bool heap_owns(uint64_t address, uint64_t *end) {
    union cell *cell = cell_of(address);
    if (cell && address >= cell->start && address < cell->end) {
        *end = cell->end;
        return true;
    }
    uint64_t first, last, next = (address >> SEGMENT_BITS) + 1;
    cells_in_use(&first, &last);
    if (next < first)
        next = first;
    while (next <= last && !atomic_load(&heap_cells[next]))
        next++;
    *end = next <= last ? next << SEGMENT_BITS : UINT64_MAX;
    return false;
}

// ---- all blocks --------------------------------------------------------------------------------

// A walk over live blocks in order of address; it ends when the list is full. Blocks that the
// target has declared are fetched one by one as the walk passes them.
struct walk {
    uint64_t from;
    struct heap_block *blocks;
    size_t count, room;
    struct heap_block declared; // the next one
    bool has_declared;
};

static void list(struct walk *walk, const struct heap_block *block) {
    walk->blocks[walk->count++] = *block;
}

static void list_declared(struct walk *walk, uint64_t before) {
    while (walk->has_declared && walk->declared.start < before && walk->count < walk->room) {
        list(walk, &walk->declared);
        walk->has_declared = declared_next(walk->declared.start + 1, &walk->declared);
    }
}

static void pass(struct walk *walk, const struct heap_block *block) {
    if (block->state != HEAP_LIVE || block->start < walk->from)
        return;
    list_declared(walk, block->start);
    if (walk->count < walk->room)
        list(walk, block);
}

static void pass_segment(struct walk *walk, const struct segment *segment) {
    struct heap_block block;
    for (unsigned unit = 0; unit < UNITS && walk->count < walk->room;) {
        uint64_t start = segment->start + ((uint64_t)unit << UNIT_BITS);
        const struct slab *slab = slab_of(segment, start);
        unit += slab ? slab->units : 1;
        if (!slab || walk->from > segment->start + ((uint64_t)unit << UNIT_BITS))
            continue;
        uint32_t slot = walk->from > start ? slot_of(slab, walk->from) : 0;
        for (; slot < slab->count; slot++)
            if (describe_slot(slab, slot, &block))
                pass(walk, &block);
    }
}

static void walk_live(struct walk *walk) {
    uint64_t cell_number, last;
    cells_in_use(&cell_number, &last);
    walk->has_declared = declared_next(walk->from, &walk->declared);
    if (cell_number < walk->from >> SEGMENT_BITS)
        cell_number = walk->from >> SEGMENT_BITS;
    for (const union cell *before = NULL; cell_number <= last && walk->count < walk->room;
         cell_number++) {
        const union cell *cell = atomic_load(&heap_cells[cell_number]);
        struct heap_block block;
        if (!cell || cell == before)
            continue;
        before = cell;
        if (!cell->is_huge)
            pass_segment(walk, &cell->segment);
        else if (describe_huge(&cell->huge, &block))
            pass(walk, &block);
    }
    list_declared(walk, UINT64_MAX);
}

size_t heap_list_live(uint64_t from, struct heap_block *blocks, size_t room) {
    struct walk walk = {.from = from, .blocks = blocks, .room = room};
    walk_live(&walk);
    return walk.count;
}

struct heap_totals heap_totals(void) {
    struct heap_totals totals = declared_totals();
    for (struct heap *heap = heap_first(); heap; heap = heap->next) {
        const struct ledger_heap *counters = heap->counters;
        totals.allocations += counters->allocations + counters->failed_resizes;
        totals.frees += counters->frees + counters->failed_frees;
        totals.bytes += counters->bytes + counters->failed_resize_bytes;
        totals.live_bytes += counters->bytes - counters->freed_bytes;
        totals.live_blocks += counters->allocations - counters->frees;
    }
    return totals;
}
