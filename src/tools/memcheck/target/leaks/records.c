#include "base/hash.h"
#include "tools/memcheck/target/leaks/search.h"

#include <string.h>

#include "tools/shared/stacks.h"

// Records are kept from one search to the next, which may ask for what has changed.
struct table {
    struct loss *records;
    uint32_t *slots; // number plus 1, 0: free; a power of two of them, at least twice the room
    size_t count, room;
};

static struct table kept;
static size_t resolution; // frames by which stacks are told apart; 0: all

void records_start(void) {
    const char *name = tool_option("leak-resolution");
    resolution = 0;
    if (name && strcmp(name, "low") == 0)
        resolution = 2;
    else if (name && strcmp(name, "med") == 0)
        resolution = 4;
}

// ---- the table ---------------------------------------------------------------------------------

static size_t frames_of(uint32_t stack, const uint64_t **pcs) {
    size_t count = stack_pcs(stack, pcs);
    return count < resolution ? count : resolution;
}

bool records_same_stack(uint32_t a, uint32_t b) {
    if (a == b)
        return true;
    if (!resolution)
        return false;
    const uint64_t *pcs_a, *pcs_b;
    size_t count = frames_of(a, &pcs_a);
    return count == frames_of(b, &pcs_b) && memcmp(pcs_a, pcs_b, count * sizeof *pcs_a) == 0;
}

static uint64_t hash_of(enum leak_kind kind, uint32_t stack) {
    if (!resolution)
        return hash_add(kind, stack);
    const uint64_t *pcs;
    size_t count = frames_of(stack, &pcs);
    uint64_t hash = kind;
    for (size_t i = 0; i < count; i++)
        hash = hash_add(hash, pcs[i]);
    return hash_add(hash, count);
}

static void table_free(struct table *table) {
    search_unmap(table->records, table->room * sizeof *table->records);
    search_unmap(table->slots, 2 * table->room * sizeof *table->slots);
    *table = (struct table){0};
}

static uint32_t *table_slot(const struct table *table, enum leak_kind kind, uint32_t stack) {
    size_t mask = 2 * table->room - 1;
    for (size_t i = hash_of(kind, stack);; i++) {
        uint32_t *slot = &table->slots[i & mask];
        const struct loss *record = &table->records[*slot - 1];
        if (!*slot || (record->kind == kind && records_same_stack(record->stack, stack)))
            return slot;
    }
}

static bool table_grow(struct table *table) {
    struct table larger = {.room = table->room ? 2 * table->room : 1024};
    larger.records = search_map(larger.room * sizeof *larger.records);
    larger.slots = search_map(2 * larger.room * sizeof *larger.slots);
    if (!larger.records || !larger.slots) {
        table_free(&larger);
        return false;
    }
    for (; larger.count < table->count; larger.count++) {
        const struct loss *record = &table->records[larger.count];
        *table_slot(&larger, record->kind, record->stack) = larger.count + 1;
        larger.records[larger.count] = *record;
    }
    table_free(table);
    *table = larger;
    return true;
}

// The record of this kind and stack, new if need be. NULL: out of memory.
static struct loss *table_record(struct table *table, enum leak_kind kind, uint32_t stack) {
    if (table->count == table->room && !table_grow(table))
        return NULL;
    uint32_t *slot = table_slot(table, kind, stack);
    if (!*slot) {
        table->records[table->count] = (struct loss){.kind = kind, .stack = stack};
        *slot = ++table->count;
    }
    return &table->records[*slot - 1];
}

// ---- merging -----------------------------------------------------------------------------------

// What the search before has found; what was gone then already is forgotten.
static bool take_over(struct table *table) {
    for (size_t i = 0; i < kept.count; i++) {
        const struct loss *old = &kept.records[i];
        if (!old->blocks)
            continue;
        struct loss *record = table_record(table, old->kind, old->stack);
        if (!record)
            return false;
        record->old_blocks = old->blocks;
        record->old_bytes = old->bytes;
        record->old_indirect_bytes = old->indirect_bytes;
    }
    return true;
}

struct merging {
    const struct search *search;
    struct leak_search *result;
    struct leak_totals *totals;
};

static void merge_block(struct merging *merging, const struct leak_block *block,
                        struct loss *record) {
    const struct search *search = merging->search;
    record->blocks++;
    record->bytes += block->size;
    merging->totals->blocks[record->kind]++;
    merging->totals->bytes[record->kind] += block->size;
    if (record->kind == LEAK_DEFINITE) {
        const struct leak_leader *leader = lost_leader(search, block->number);
        if (leader)
            record->indirect_bytes += leader->indirect;
        if (leader && leader->cycle > record->cycle)
            record->cycle = leader->cycle;
    } else if (record->kind == LEAK_REACHABLE) {
        unsigned heuristic = search->blocks.states[block->number] / STATE_HEURISTIC;
        if (heuristic) {
            merging->result->heuristic_blocks[heuristic - 1]++;
            merging->result->heuristic_bytes[heuristic - 1] += block->size;
        }
    }
}

// Of all blocks of a record, the one nearest to a root. False: out of memory.
static bool add_holders(const struct search *search, struct table *table) {
    struct leak_nearest all = {0};
    for (unsigned i = 0; i < LEAK_THREADS; i++) {
        const struct leak_nearest *nearest = &search->nearest[i];
        for (size_t at = 0; at < nearest->room; at++) {
            struct leak_near near = nearest->at[at];
            if (!near.held)
                continue;
            // Stacks that are merged have one number.
            struct loss *record = table_record(table, LEAK_REACHABLE, near.stack);
            if (!record)
                return false;
            near.stack = record->stack;
            nearest_note(&all, &near);
        }
    }
    for (size_t at = 0; at < all.room; at++)
        if (all.at[at].held)
            mark_holder(search, &all.at[at], table_record(table, LEAK_REACHABLE, all.at[at].stack));
    nearest_free(&all);
    return true;
}

static bool merge(struct merging *merging, struct table *table) {
    const struct leak_blocks *blocks = &merging->search->blocks;
    struct loss *record = NULL;
    struct leak_walk walk = {0};
    struct leak_block block;
    while (blocks_next(blocks, &walk, &block)) {
        enum leak_kind kind = state_kind(blocks->states[block.number]);
        if (!record || record->kind != kind || record->stack != block.stack)
            record = table_record(table, kind, block.stack);
        if (!record)
            return false;
        merge_block(merging, &block, record);
    }
    return add_holders(merging->search, table);
}

// ---- order and selection -----------------------------------------------------------------------

static int compare(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static bool is_before(const struct loss *a, const struct loss *b) {
    int order = compare(a->bytes + a->indirect_bytes, b->bytes + b->indirect_bytes);
    if (!order)
        order = compare(b->kind, a->kind); // the harmless first
    if (!order)
        order = compare(a->blocks, b->blocks);
    if (!order)
        order = compare(a->stack, b->stack);
    return order < 0;
}

static void swap(struct loss *a, struct loss *b) {
    struct loss other = *a;
    *a = *b;
    *b = other;
}

static void sift_down(struct loss *records, size_t at, size_t count) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&records[child], &records[child + 1]))
            child++;
        if (!is_before(&records[at], &records[child]))
            return;
        swap(&records[at], &records[child]);
    }
}

static void sort(struct loss *records, size_t count) {
    for (size_t i = count / 2; i-- > 0;)
        sift_down(records, i, count);
    for (size_t end = count; end-- > 1;) {
        swap(&records[0], &records[end]);
        sift_down(records, 0, end);
    }
}

static bool is_wanted(const struct loss *record, enum leak_delta delta) {
    switch (delta) {
    case LEAKS_INCREASED:
        return record->blocks > record->old_blocks || record->bytes > record->old_bytes ||
               record->indirect_bytes > record->old_indirect_bytes;
    case LEAKS_CHANGED:
        return record->blocks != record->old_blocks || record->bytes != record->old_bytes ||
               record->indirect_bytes != record->old_indirect_bytes;
    case LEAKS_NEW:
        return record->blocks && !record->old_blocks;
    case LEAKS_ALL:
        break;
    }
    return record->blocks > 0;
}

bool records_make(const struct search *search, enum leak_delta delta, struct leak_search *result,
                  struct leak_totals *totals, size_t *record_room) {
    struct table table = {0};
    struct merging merging = {.search = search, .result = result, .totals = totals};
    if (!take_over(&table) || !merge(&merging, &table)) {
        table_free(&table);
        return false;
    }
    *record_room = table.count * sizeof *result->records;
    result->records = search_map(*record_room);
    if (result->records && table.count) {
        memcpy(result->records, table.records, *record_room);
        result->record_count = table.count;
        for (size_t i = 0; i < table.count; i++)
            result->records[i].is_quiet = !is_wanted(&result->records[i], delta);
        sort(result->records, result->record_count);
    }
    table_free(&kept);
    kept = table;
    return result->records != NULL;
}
