// The leak search over large heaps and over many small ones, whose blocks point anywhere.
#include <string.h>

#include "any.h"
#include "leaks_world.h"
#include "unit.h"

// ---- random graphs, against a plain implementation of the rules ---------------------------------

enum { NODES = 40, EDGES = 90, ROOTS = 4 };

struct plain {
    int count;
    uint64_t start[NODES], size[NODES], indirect[NODES];
    int kind[NODES], cycle[NODES];
};

static int plain_find(const struct plain *plain, uint64_t address) {
    for (int i = 0; i < plain->count; i++)
        if (address - plain->start[i] < (plain->size[i] ? plain->size[i] : 1))
            return i;
    return -1;
}

static void plain_push(struct plain *plain, uint64_t value, bool definite);

static void plain_scan(struct plain *plain, int from, bool definite) {
    for (uint64_t at = 0; at + 8 <= plain->size[from]; at += 8)
        plain_push(plain, *(uint64_t *)(plain->start[from] + at), definite);
}

static void plain_push(struct plain *plain, uint64_t value, bool definite) {
    int to = plain_find(plain, value);
    if (to < 0 || plain->kind[to] == LEAK_REACHABLE)
        return;
    if (value == plain->start[to] && definite) {
        plain->kind[to] = LEAK_REACHABLE;
        plain_scan(plain, to, true);
    } else if (plain->kind[to] == LEAK_DEFINITE) {
        plain->kind[to] = LEAK_POSSIBLE;
        plain_scan(plain, to, false);
    }
}

static void plain_clique(struct plain *plain, int leader, int from) {
    for (uint64_t at = 0; at + 8 <= plain->size[from]; at += 8) {
        int to = plain_find(plain, *(uint64_t *)(plain->start[from] + at));
        if (to < 0 || to == leader || plain->kind[to] != LEAK_DEFINITE)
            continue;
        plain->kind[to] = LEAK_INDIRECT;
        plain->indirect[leader] += plain->size[to] + plain->indirect[to];
        plain_clique(plain, leader, to);
    }
}

static bool plain_leads(const struct plain *plain, int from, int to, bool *seen) {
    for (uint64_t at = 0; at + 8 <= plain->size[from]; at += 8) {
        int next = plain_find(plain, *(uint64_t *)(plain->start[from] + at));
        if (next == to)
            return true;
        if (next >= 0 && !seen[next]) {
            seen[next] = true;
            if (plain_leads(plain, next, to, seen))
                return true;
        }
    }
    return false;
}

// Blocks that the leader leads to and that lead to it.
static int plain_cycle(const struct plain *plain, int leader) {
    int count = 0;
    for (int i = 0; i < plain->count; i++) {
        bool there[NODES] = {0}, back[NODES] = {0};
        count += i != leader && plain_leads(plain, leader, i, there) &&
                 plain_leads(plain, i, leader, back);
    }
    return count ? count + 1 : 0;
}

static uint64_t any_target(const struct plain *plain) {
    uint64_t to = any(plain->count);
    uint64_t inside = plain->size[to] ? any(plain->size[to]) : 0;
    return plain->start[to] + (any(4) ? 0 : inside);
}

static void make_any_graph(struct plain *plain) {
    *plain = (struct plain){.count = 2 + (int)any(NODES - 2)};
    world_empty_heap();
    for (int i = 0; i < plain->count; i++) {
        plain->size[i] = any(7) * 8;
        plain->start[i] = world_block(plain->size[i], 1 + (uint32_t)i);
        memset((void *)plain->start[i], 0, plain->size[i]);
    }
    for (uint64_t edges = any(EDGES); edges; edges--) {
        uint64_t from = any(plain->count);
        if (plain->size[from])
            world_point(plain->start[from] + any(plain->size[from] / 8) * 8, any_target(plain));
    }
    for (uint64_t i = 0; i < ROOTS; i++)
        world_point(DATA + 8 * i, any(3) ? 0 : any_target(plain));
}

static void judge(struct plain *plain) {
    for (uint64_t i = 0; i < ROOTS; i++)
        plain_push(plain, *(uint64_t *)(DATA + 8 * i), true);
    for (int i = 0; i < plain->count; i++)
        if (plain->kind[i] == LEAK_DEFINITE)
            plain_clique(plain, i, i);
}

TEST(random_graphs_are_as_the_rules_say) {
    long cycles = 0, kinds[4] = {0};
    world_begin();
    world.heuristics = "none";
    leaks_start();
    for (int round = 0; round < 4000; round++) {
        static struct plain plain;
        make_any_graph(&plain);
        judge(&plain);
        world_search();
        for (int i = 0; i < plain.count; i++) {
            const struct loss *got = world_record((enum leak_kind)plain.kind[i], 1 + (uint32_t)i);
            CHECK(got != NULL && got->blocks == 1);
            CHECK_EQ(got->bytes, plain.size[i]);
            kinds[plain.kind[i]]++;
            if (plain.kind[i] != LEAK_DEFINITE)
                continue;
            CHECK_EQ(got->indirect_bytes, plain.indirect[i]);
            CHECK_EQ(got->cycle, plain_cycle(&plain, i));
            cycles += got->cycle > 0;
        }
    }
    NOTE("%ld definite, %ld indirect, %ld possible, %ld reachable, %ld cycles", kinds[0], kinds[1],
         kinds[2], kinds[3], cycles);
    CHECK(cycles > 400 && kinds[LEAK_POSSIBLE] > 1000);
}

// ---- a large heap ------------------------------------------------------------------------------

// Enough blocks that further threads help; every block has two that it holds.
TEST(threads_share_the_work) {
    world_begin();
    enum { MANY = 300000 };
    for (int i = 0; i < MANY; i++)
        world_block(32, 1 + (uint32_t)i % 3);
    for (int i = 0; i < MANY / 2; i++) {
        world_point(world.starts[i], 2 * i + 1 < MANY ? world.starts[2 * i + 1] : 0);
        world_point(world.starts[i] + 8, 2 * i + 2 < MANY ? world.starts[2 * i + 2] : 0);
    }
    // One subtree is held by an interior pointer only, one not at all.
    world_point(world.starts[1], world.starts[3] + 4);
    world_point(world.starts[2], 0);
    world_point(DATA, world.starts[0]);
    world_search();
    struct leak_totals totals = leaks_last();
    long sub[3] = {0};
    for (int top = 3; top <= 5; top += 2)
        for (long first = top, width = 1; first < MANY; first = 2 * first + 1, width *= 2)
            sub[top / 2] += first + width < MANY ? width : MANY - first;
    CHECK_EQ(totals.blocks[LEAK_POSSIBLE], sub[1]);
    CHECK_EQ(totals.blocks[LEAK_DEFINITE], 1);
    CHECK_EQ(totals.blocks[LEAK_INDIRECT], sub[2] - 1);
    CHECK_EQ(totals.blocks[LEAK_REACHABLE], MANY - sub[1] - sub[2]);
}

UNIT_MAIN()
