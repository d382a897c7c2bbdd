// Step 3: who of the lost blocks leads to whom.
//
// Blocks of a clique wait in a list, which is also the list of its members, as long as it has room.
// From then on they wait in a set, a bit for each block, and the members are known by their state
// only: that costs a look at all states for such a clique, but there cannot be many of them.
#include "base/search.h"
#include "tools/memcheck/target/leaks/search.h"

enum {
    LIST = 1 << 16,       // members
    WORTH_SORTING = 4096, // blocks
};

struct set {
    uint64_t *words;
    uint32_t count, lowest, highest;
};

struct clique {
    struct search *search;
    struct leak_block leader;
    uint64_t indirect; // bytes
    uint64_t words;    // of all its blocks
    bool is_cycle;     // something in it points to the leader
    uint32_t count;    // in the list
    bool is_large;     // there are more
    uint32_t *list;
    struct set next, now;
    const uint32_t *scanned; // blocks that are being scanned
};

// ---- sets --------------------------------------------------------------------------------------

static size_t set_size(const struct search *search) {
    return (search->blocks.count / 64 + 1) * sizeof(uint64_t);
}

static void set_add(struct set *set, uint32_t number) {
    set->words[number / 64] |= 1ul << number % 64;
    set->lowest = !set->count || number < set->lowest ? number : set->lowest;
    set->highest = !set->count || number > set->highest ? number : set->highest;
    set->count++;
}

static void scan(struct clique *clique, const uint32_t *numbers, uint32_t count);

// Takes all out, in order: blocks are scanned fastest in order of address.
static void scan_set(struct clique *clique, struct set *set) {
    uint32_t numbers[SCAN_MOST], count = 0;
    for (uint32_t at = set->lowest / 64; set->count && at <= set->highest / 64; at++) {
        for (uint64_t bits = set->words[at]; bits; bits &= bits - 1) {
            numbers[count++] = at * 64 + (uint32_t)__builtin_ctzl(bits);
            if (count == SCAN_MOST) {
                scan(clique, numbers, count);
                count = 0;
            }
        }
        set->words[at] = 0;
    }
    scan(clique, numbers, count);
    set->count = 0;
}

// ---- leaders -----------------------------------------------------------------------------------

struct leak_leader *lost_leader(const struct search *search, uint32_t number) {
    const struct leak_blocks *blocks = &search->blocks;
    if (number >= blocks->first_declared)
        return &blocks->declared[number - blocks->first_declared].leader;
    struct leak_leader *leaders = search->leaders.at;
    size_t count = search->leaders.count;
    size_t i = search_first(at, 0, count, leaders[at].number >= number);
    return i < count && leaders[i].number == number ? &leaders[i] : NULL;
}

// Leaders come in order of address. False: out of memory.
static bool note_leader(const struct clique *clique, uint32_t cycle) {
    struct search *search = clique->search;
    uint32_t number = clique->leader.number;
    struct leak_leader *leader = number >= search->blocks.first_declared
                                     ? lost_leader(search, number)
                                     : list_add(&search->leaders, sizeof *leader);
    if (leader)
        *leader =
            (struct leak_leader){.number = number, .cycle = cycle, .indirect = clique->indirect};
    return leader;
}

// ---- cliques -----------------------------------------------------------------------------------

static void visit_lost(void *context, uint32_t from, uint64_t holder, uint64_t value,
                       const struct leak_block *block) {
    struct clique *clique = context;
    struct search *search = clique->search;
    uint32_t number = block->number;
    if (number == clique->leader.number) {
        clique->is_cycle |= clique->scanned[from] != number;
        return;
    }
    uint8_t *state = &search->blocks.states[number];
    if (*state != STATE_UNREACHED)
        return;
    clique->indirect += block->size;
    *state = LEAK_INDIRECT;
    if (block->start < clique->leader.start) {
        // It was a leader so far. All it leads to has been found then.
        const struct leak_leader *leader = lost_leader(search, number);
        clique->indirect += leader ? leader->indirect : 0;
        return;
    }
    *state = LEAK_INDIRECT | STATE_IN_CLIQUE;
    clique->words += block->size / 8;
    if (clique->count < LIST) {
        clique->list[clique->count++] = number;
    } else {
        clique->is_large = true;
        set_add(&clique->next, number);
    }
}

static void scan(struct clique *clique, const uint32_t *numbers, uint32_t count) {
    clique->scanned = numbers;
    if (count)
        scan_blocks(clique->search, numbers, count, visit_lost, clique);
    clique->scanned = NULL;
}

static void find_clique(struct clique *clique) {
    scan(clique, &clique->leader.number, 1);
    for (uint32_t first = 0; first < clique->count;) {
        uint32_t count = clique->count - first;
        if (count >= WORTH_SORTING) {
            for (uint32_t i = 0; i < count; i++)
                set_add(&clique->now, clique->list[first + i]);
            scan_set(clique, &clique->now);
        } else {
            count = count < SCAN_MOST ? count : SCAN_MOST;
            scan(clique, clique->list + first, count);
        }
        first += count;
    }
    while (clique->next.count) {
        struct set set = clique->now;
        clique->now = clique->next;
        clique->next = set;
        scan_set(clique, &clique->now);
    }
}

static void forget_members(struct clique *clique) {
    uint8_t *states = clique->search->blocks.states;
    if (clique->is_large)
        for (uint32_t i = 0; i < clique->search->blocks.count; i++)
            states[i] &= ~STATE_IN_CLIQUE;
    else
        for (uint32_t i = 0; i < clique->count; i++)
            states[clique->list[i]] &= ~STATE_IN_CLIQUE;
}

static bool lead(struct clique *clique) {
    find_clique(clique);
    uint32_t cycle = 0;
    if (clique->is_cycle)
        cycle = cycle_count(clique->search, clique->leader.number,
                            clique->is_large ? NULL : clique->list, clique->count,
                            clique->words + clique->leader.size / 8);
    forget_members(clique);
    return !clique->indirect || note_leader(clique, cycle);
}

static bool find_cliques(struct search *search, uint32_t *list, uint64_t *next, uint64_t *now) {
    struct leak_walk walk = {0};
    struct leak_block block;
    bool ok = list && next && now;
    while (ok && blocks_next(&search->blocks, &walk, &block)) {
        if (search->blocks.states[block.number] != STATE_UNREACHED)
            continue;
        struct clique clique = {.search = search,
                                .leader = block,
                                .list = list,
                                .next = {.words = next},
                                .now = {.words = now}};
        ok = lead(&clique);
    }
    return ok;
}

bool lost_cliques(struct search *search) {
    size_t size = set_size(search);
    uint32_t *list = search_map(LIST * sizeof *list);
    uint64_t *next = search_map(size), *now = search_map(size);
    bool ok = find_cliques(search, list, next, now);
    search_unmap(list, LIST * sizeof *list);
    search_unmap(next, size);
    search_unmap(now, size);
    return ok;
}
