/* Pools and arenas against a model: contents stay what they were, statistics are right. */
#include <quern/heap.h>

enum { OBJECTS = 300, ROUNDS = 20000 };

static unsigned next(void) {
    static unsigned state = 12345;
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

#define REQUIRE(condition)                                                                         \
    do                                                                                             \
        if (!(condition)) {                                                                        \
            printf("line %d: %s\n", __LINE__, #condition);                                         \
            return 1;                                                                              \
        }                                                                                          \
    while (0)

static int test_pool(void) {
    struct quern_pool pool;
    static unsigned char *out[OBJECTS];
    size_t live = 0, peak = 0, taken = 0, i;
    int round;
    quern_pool_begin(&pool, "model", 40, 3);
    for (round = 0; round < ROUNDS; round++) {
        unsigned at = next() % OBJECTS;
        if (out[at]) {
            for (i = 0; i < 40; i++)
                REQUIRE(out[at][i] == (unsigned char)at);
            REQUIRE(quern_pool_give(&pool, out[at]));
            REQUIRE(!quern_pool_give(&pool, out[at]));
            REQUIRE(!quern_pool_give(&pool, out[at] + 1));
            out[at] = NULL;
            live--;
        } else {
            out[at] = (unsigned char *)quern_pool_take(&pool);
            REQUIRE(out[at] && (size_t)out[at] % 16 == 0);
            memset(out[at], (int)at, 40);
            taken++;
            if (++live > peak)
                peak = live;
        }
        REQUIRE(pool.stats.live == live && pool.stats.peak == peak && pool.stats.taken == taken);
    }
    REQUIRE(!quern_pool_give(&pool, NULL) && !quern_pool_give(&pool, &pool));
    REQUIRE(pool.stats.refused == 2 * (taken - live) + 1);
    /* Everything beyond the peak is a slot that was used before. */
    REQUIRE(pool.stats.hits == taken - peak);
    REQUIRE(quern_pool_hit_ratio(&pool) > 0.9);
    quern_pool_end(&pool);
    REQUIRE(pool.stats.live == 0 && pool.stats.reserved_bytes == 0);
    return 0;
}

static int test_arena(void) {
    struct quern_arena arena;
    unsigned char *out[50];
    size_t sizes[50], reserved = 0, i, j;
    int round;
    quern_arena_begin(&arena, "model", 1);
    for (round = 0; round < 200; round++) {
        size_t bytes = 0;
        for (i = 0; i < 50; i++) {
            sizes[i] = next() % (round % 10 == 0 ? 20000 : 500);
            out[i] = (unsigned char *)quern_arena_take(&arena, sizes[i]);
            REQUIRE(out[i] && (size_t)out[i] % 16 == 0);
            memset(out[i], (int)i, sizes[i]);
            bytes += sizes[i];
        }
        for (i = 0; i < 50; i++)
            for (j = 0; j < sizes[i]; j++)
                REQUIRE(out[i][j] == i);
        REQUIRE(arena.stats.live == 50 && arena.stats.live_bytes == bytes);
        REQUIRE(arena.stats.peak_bytes >= bytes && arena.stats.peak == 50);
        quern_arena_reset(&arena);
        if (round == 100)
            reserved = arena.stats.reserved_bytes;
    }
    REQUIRE(arena.stats.taken == 200 * 50 && arena.stats.resets == 200);
    REQUIRE(arena.stats.reserved_bytes < 4 * reserved && quern_arena_hit_ratio(&arena) > 0.9);
    REQUIRE(!quern_arena_take(&arena, (size_t)-1));
    quern_arena_end(&arena);
    return 0;
}

int main(void) {
    return test_pool() || test_arena();
}
