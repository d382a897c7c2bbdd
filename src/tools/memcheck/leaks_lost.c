// Step 3: who of the lost blocks leads to whom.
#include "tools/memcheck/leaks_search.h"

// ---- cliques -----------------------------------------------------------------------------------
//
// Pointers inside a clique are noted, so that they can be followed back: the block that holds one,
// and the one noted before it that leads to the same block. A block's pointed_at is the last noted.

struct lost_pointer {
    uint32_t from, before; // numbers of pointers count from 1, 0: none
};

struct clique {
    struct search *search;
    uint32_t leader;
    uint32_t last, leader_last; // block that was found last in the queue; pointer to the leader
    uint32_t pointer_count;
    struct lost_pointer *pointers;
};

enum {
    FOLLOWED = 64,        // lists of pointers
    WORTH_SORTING = 4096, // blocks
    MOST_POINTERS = UINT32_MAX - 1,
};

static void note_pointer(struct clique *clique, uint32_t from, uint32_t *last) {
    struct lost_pointer *pointers = clique->pointers;
    if (!pointers || clique->pointer_count == MOST_POINTERS)
        return;
    // Many pointers in a row from one block to another are as good as one.
    if (*last && *last == clique->pointer_count && pointers[*last].from == from)
        return;
    pointers[++clique->pointer_count] = (struct lost_pointer){.from = from, .before = *last};
    *last = clique->pointer_count;
}

static void visit_lost(void *context, uint32_t from, uint64_t holder, uint64_t value,
                       uint32_t number) {
    struct clique *clique = context;
    struct leak_block *blocks = clique->search->blocks.blocks;
    struct leak_block *block = &blocks[number];
    if (number == clique->leader) {
        if (from != number)
            note_pointer(clique, from, &clique->leader_last);
        return;
    }
    if (block->state == LEAK_INDIRECT && block->clique == clique->leader && number != from)
        note_pointer(clique, from, &block->pointed_at);
    if (block->state != STATE_UNREACHED)
        return;
    blocks[clique->leader].indirect += block->size;
    block->state = LEAK_INDIRECT;
    if (number < clique->leader) {
        // It was a leader so far. All it leads to has been found then.
        blocks[clique->leader].indirect += block->indirect;
        block->clique = block->pointed_at = 0;
        return;
    }
    block->clique = clique->leader;
    block->pointed_at = 0;
    note_pointer(clique, from, &block->pointed_at);
    clique->search->queue[clique->last++] = number;
}

// Puts numbers in order. Blocks are scanned fastest in order of address.
static void sort_numbers(struct search *search, uint32_t *numbers, uint32_t count) {
    uint64_t *set = search->set;
    uint32_t lowest = UINT32_MAX, highest = 0;
    for (uint32_t i = 0; i < count; i++) {
        set[numbers[i] / 64] |= 1ul << numbers[i] % 64;
        lowest = numbers[i] < lowest ? numbers[i] : lowest;
        highest = numbers[i] > highest ? numbers[i] : highest;
    }
    uint32_t at = 0;
    for (uint32_t word = lowest / 64; at < count && word <= highest / 64; word++) {
        for (uint64_t bits = set[word]; bits; bits &= bits - 1)
            numbers[at++] = word * 64 + (uint32_t)__builtin_ctzl(bits);
        set[word] = 0;
    }
}

// By distance from the leader, so that the queue holds all of one distance at some time.
static void find_clique(struct clique *clique) {
    struct search *search = clique->search;
    scan_blocks(search, &clique->leader, 1, visit_lost, clique);
    for (uint32_t first = 0; first < clique->last;) {
        uint32_t count = clique->last - first;
        if (count >= WORTH_SORTING && search->set)
            sort_numbers(search, search->queue + first, count);
        scan_blocks(search, search->queue + first, count, visit_lost, clique);
        first += count;
    }
}

// ---- cycles ------------------------------------------------------------------------------------
//
// All blocks of a clique are reached from its leader, so those that lead to it form cycles with it.

enum { SEEN = UINT32_MAX }; // instead of pointed_at

// How many blocks lead to the leader, itself included. Several lists of pointers are followed in
// turn, so that memory for all of them is fetched at the same time.
static uint32_t count_cycle(struct clique *clique) {
    struct leak_block *blocks = clique->search->blocks.blocks;
    uint32_t *waiting = clique->search->queue; // lists
    uint32_t lists[FOLLOWED] = {clique->leader_last}, from[FOLLOWED], cycle = 1, last = 0;
    unsigned count = 1;
    while (count) {
        for (unsigned i = 0; i < count; i++) {
            const struct lost_pointer *pointer = &clique->pointers[lists[i]];
            from[i] = pointer->from;
            lists[i] = pointer->before;
            __builtin_prefetch(&blocks[from[i]], 1);
        }
        for (unsigned i = 0; i < count; i++) {
            struct leak_block *block = &blocks[from[i]];
            if (from[i] == clique->leader || block->pointed_at == SEEN)
                continue;
            waiting[last++] = block->pointed_at;
            block->pointed_at = SEEN;
            cycle++;
        }
        unsigned left = 0;
        for (unsigned i = 0; i < count; i++)
            if (lists[i])
                lists[left++] = lists[i];
        while (left < FOLLOWED && last)
            lists[left++] = waiting[--last];
        for (count = 0; count < left; count++)
            __builtin_prefetch(&clique->pointers[lists[count]]);
    }
    return cycle;
}

void lost_cliques(struct search *search) {
    struct leak_blocks *blocks = &search->blocks;
    size_t words = 2; // where pointers between lost blocks may be
    for (uint32_t i = 0; i < blocks->count; i++)
        if (blocks->blocks[i].state == STATE_UNREACHED)
            words += blocks->blocks[i].size / 8;
    size_t pointer_size = words * sizeof(struct lost_pointer);
    size_t cycle_size = ((size_t)blocks->count / 2 + 1) * sizeof *search->cycles;
    struct lost_pointer *pointers = search_map(pointer_size);
    search->cycles = search_map(cycle_size);
    size_t set_size = ((size_t)blocks->count / 64 + 1) * sizeof *search->set;
    search->set = search_map(set_size);
    for (uint32_t i = 0; i < blocks->count; i++) {
        if (blocks->blocks[i].state != STATE_UNREACHED)
            continue;
        blocks->blocks[i].indirect = 0;
        struct clique clique = {.search = search, .leader = i, .pointers = pointers};
        find_clique(&clique);
        if (clique.leader_last && search->cycles)
            search->cycles[search->cycle_count++] =
                (struct leak_cycle){.leader = i, .blocks = count_cycle(&clique)};
    }
    search_unmap(pointers, pointer_size);
    search_unmap(search->set, set_size);
}
