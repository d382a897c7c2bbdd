// Cycles of lost blocks.
//
// All blocks of a clique are reached from its leader, so those that lead to it form cycles with it.
// Only cliques that do lead back come here. They are scanned once more, and pointers between their
// blocks are noted, so that they can be followed back: the block that holds one, and the one noted
// before it that leads to the same block.
//
// The leader has place 0, members have others: in a small clique they are counted, and found
// through a table; in a large one, the place is the number plus 1.
#include <string.h>

#include "base/hash.h"
#include "tools/memcheck/target/leaks/search.h"

enum {
    FOLLOWED = 64, // pointers, or lists of them, at the same time
    MOST_POINTERS = UINT32_MAX - 1,
    SEEN = UINT32_MAX, // instead of the last pointer to a block
    FEW = 256,         // members for which the stack has room
};

struct pointer {
    uint32_t from, before; // numbers of pointers count from 1, 0: none
};

struct cycle {
    const struct search *search;
    uint32_t leader;
    const uint32_t *members; // NULL: known by their state
    uint32_t count;
    uint32_t *table; // places, of a power of two
    size_t room;
    uint32_t *last; // by place: the last pointer to it
    uint32_t *waiting;
    struct pointer *pointers;
    uint32_t pointer_count;
    const uint32_t *places; // of the blocks that are being scanned
    unsigned fetched_count; // pointers to be noted when memory for that has come
    struct {
        uint32_t from, to;
    } fetched[FOLLOWED];
};

// ---- places ------------------------------------------------------------------------------------

static uint32_t *table_entry(const struct cycle *cycle, uint32_t number) {
    size_t mask = cycle->room - 1;
    for (size_t i = number * HASH_FACTOR >> 20;; i++) {
        uint32_t *entry = &cycle->table[i & mask];
        if (!*entry || cycle->members[*entry - 1] == number)
            return entry;
    }
}

// Of a member.
static uint32_t place_of(const struct cycle *cycle, uint32_t number) {
    if (number == cycle->leader)
        return 0;
    return cycle->members ? *table_entry(cycle, number) : number + 1;
}

static void fill_table(struct cycle *cycle) {
    for (uint32_t i = 0; i < cycle->count; i++)
        *table_entry(cycle, cycle->members[i]) = i + 1;
}

// ---- pointers ----------------------------------------------------------------------------------

static void note(struct cycle *cycle, uint32_t from, uint32_t to) {
    // Many pointers in a row from one block to another are as good as one.
    uint32_t *last = &cycle->last[to];
    if (*last && *last == cycle->pointer_count && cycle->pointers[*last].from == from)
        return;
    if (cycle->pointer_count == MOST_POINTERS)
        return;
    cycle->pointers[++cycle->pointer_count] = (struct pointer){.from = from, .before = *last};
    *last = cycle->pointer_count;
}

static void note_fetched(struct cycle *cycle) {
    for (unsigned i = 0; i < cycle->fetched_count; i++)
        note(cycle, cycle->fetched[i].from, cycle->fetched[i].to);
    cycle->fetched_count = 0;
}

static void visit(void *context, uint32_t from, uint64_t holder, uint64_t value,
                  const struct leak_block *block) {
    struct cycle *cycle = context;
    uint32_t number = block->number;
    if (number != cycle->leader && !(cycle->search->blocks.states[number] & STATE_IN_CLIQUE))
        return;
    uint32_t to = place_of(cycle, number), holds = cycle->places[from];
    if (holds == to)
        return;
    __builtin_prefetch(&cycle->last[to], 1);
    cycle->fetched[cycle->fetched_count].from = holds;
    cycle->fetched[cycle->fetched_count++].to = to;
    if (cycle->fetched_count == FOLLOWED)
        note_fetched(cycle);
}

struct batch {
    uint32_t count, numbers[SCAN_MOST], places[SCAN_MOST];
};

static void scan(struct cycle *cycle, struct batch *batch) {
    cycle->places = batch->places;
    if (batch->count)
        scan_blocks(cycle->search, batch->numbers, batch->count, visit, cycle);
    cycle->places = NULL;
    batch->count = 0;
}

static void add(struct cycle *cycle, struct batch *batch, uint32_t number, uint32_t place) {
    batch->numbers[batch->count] = number;
    batch->places[batch->count++] = place;
    if (batch->count == SCAN_MOST)
        scan(cycle, batch);
}

static void scan_members(struct cycle *cycle) {
    const struct leak_blocks *blocks = &cycle->search->blocks;
    struct batch batch;
    batch.count = 0;
    add(cycle, &batch, cycle->leader, 0);
    for (uint32_t i = 0; cycle->members && i < cycle->count; i++)
        add(cycle, &batch, cycle->members[i], i + 1);
    for (uint32_t i = 0; !cycle->members && i < blocks->count; i++)
        if (blocks->states[i] & STATE_IN_CLIQUE)
            add(cycle, &batch, i, i + 1);
    scan(cycle, &batch);
    note_fetched(cycle);
}

// ---- counting ----------------------------------------------------------------------------------

// Several lists of pointers are followed in turn, so that memory for all of them is fetched at the
// same time.
static uint32_t follow_back(struct cycle *cycle) {
    uint32_t lists[FOLLOWED] = {cycle->last[0]}, from[FOLLOWED], length = 1, waiting = 0;
    unsigned count = lists[0] != 0;
    while (count) {
        for (unsigned i = 0; i < count; i++) {
            const struct pointer *pointer = &cycle->pointers[lists[i]];
            from[i] = pointer->from;
            lists[i] = pointer->before;
            __builtin_prefetch(&cycle->last[from[i]], 1);
        }
        for (unsigned i = 0; i < count; i++) {
            uint32_t *last = &cycle->last[from[i]];
            if (from[i] == 0 || *last == SEEN)
                continue;
            cycle->waiting[waiting++] = *last;
            *last = SEEN;
            length++;
        }
        unsigned left = 0;
        for (unsigned i = 0; i < count; i++)
            if (lists[i])
                lists[left++] = lists[i];
        while (left < FOLLOWED && waiting)
            lists[left++] = cycle->waiting[--waiting];
        for (count = 0; count < left; count++)
            __builtin_prefetch(&cycle->pointers[lists[count]]);
    }
    return length;
}

// Small cycles are by far the most, and need nothing from the kernel.
static uint32_t count_few(struct cycle *cycle) {
    uint32_t table[2 * FEW] = {0}, last[FEW + 1] = {0}, waiting[FEW + 1];
    struct pointer pointers[4 * FEW + 2];
    cycle->table = table;
    cycle->room = 2 * FEW;
    cycle->last = last;
    cycle->waiting = waiting;
    cycle->pointers = pointers;
    fill_table(cycle);
    scan_members(cycle);
    return follow_back(cycle);
}

uint32_t cycle_count(const struct search *search, uint32_t leader, const uint32_t *members,
                     uint32_t count, uint64_t words) {
    struct cycle cycle = {.search = search, .leader = leader, .members = members, .count = count};
    if (members && count <= FEW && words <= 4 * FEW)
        return count_few(&cycle);
    size_t most = members ? count : search->blocks.count;
    cycle.room = 1;
    while (members && cycle.room < 2 * (size_t)count)
        cycle.room *= 2;
    size_t each = (most + 1) * sizeof *cycle.last, pointers = (words + 2) * sizeof *cycle.pointers;
    cycle.table = search_map(cycle.room * sizeof *cycle.table);
    cycle.last = search_map(each);
    cycle.waiting = search_map(each);
    cycle.pointers = search_map(pointers);
    uint32_t length = 0;
    if (cycle.table && cycle.last && cycle.waiting && cycle.pointers) {
        if (members)
            fill_table(&cycle);
        scan_members(&cycle);
        length = follow_back(&cycle);
    }
    search_unmap(cycle.table, cycle.room * sizeof *cycle.table);
    search_unmap(cycle.last, each);
    search_unmap(cycle.waiting, each);
    search_unmap(cycle.pointers, pointers);
    return length;
}
