// The leak search: what it takes for a leak, and how it puts leaks together.
#include <string.h>
#include <sys/mman.h>

#include "leaks_world.h"
#include "unit.h"

// ---- kinds -------------------------------------------------------------------------------------

TEST(nothing_points_to_it) {
    world_begin();
    world_block(24, 1);
    world_search();
    CHECK_EQ(world.result.record_count, 1);
    CHECK_EQ(world.records[0].kind, LEAK_DEFINITE);
    CHECK_EQ(world.records[0].bytes, 24);
    CHECK_EQ(world.records[0].cycle, 0);
}

TEST(chain_from_data_is_reachable) {
    world_begin();
    uint64_t a = world_block(16, 1), b = world_block(16, 2), c = world_block(16, 3);
    world_point(DATA + 800, a);
    world_point(a + 8, b);
    world_point(b, c);
    world_search();
    CHECK_EQ(world_bytes(LEAK_REACHABLE), 48);
    const struct loss *last = world_record(LEAK_REACHABLE, 3);
    CHECK(last != NULL);
    CHECK_EQ(last->holder, HELD_BY_DATA);
    CHECK_EQ(last->holder_address, DATA + 800);
    CHECK_EQ(last->holder_steps, 2);
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder_steps, 0);
}

TEST(nearest_holder_is_told) {
    world_begin();
    uint64_t a = world_block(16, 1), b = world_block(16, 1), c = world_block(16, 1);
    world_point(DATA + 8, c);
    world_point(c, b);
    world_point(b, a);
    world_search();
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder_steps, 0);
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder_address, DATA + 8);
}

TEST(registers_and_stack_hold) {
    world_begin();
    uint64_t a = world_block(16, 1), b = world_block(16, 2), c = world_block(16, 3);
    world.registers[9] = a;
    world_point(STACK + STACK_SIZE / 2 + 64, b);
    world_point(STACK + STACK_SIZE / 2 - 256, c); // below the stack pointer
    world_search();
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder, HELD_BY_REGISTER);
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder_address, 9);
    CHECK_EQ(world_record(LEAK_REACHABLE, 1)->holder_thread, THREAD);
    CHECK_EQ(world_record(LEAK_REACHABLE, 2)->holder, HELD_BY_STACK);
    CHECK_EQ(world_record(LEAK_REACHABLE, 2)->holder_pc, 0x77);
    CHECK(world_record(LEAK_DEFINITE, 3) != NULL);
}

TEST(interior_pointers_are_possible_until_a_start_is_found) {
    world_begin();
    uint64_t a = world_block(64, 1), b = world_block(64, 2), c = world_block(32, 3);
    world_point(DATA, a + 17);
    world_point(DATA + 8, b + 16);
    world_point(a + 24, c);
    world_search();
    CHECK(world_record(LEAK_POSSIBLE, 1) && world_record(LEAK_POSSIBLE, 2));
    CHECK(world_record(LEAK_POSSIBLE, 3) != NULL); // the way there is doubtful
    world_point(c + 8, b);
    world_point(DATA + 80000, a);
    world_search();
    CHECK_EQ(world_bytes(LEAK_REACHABLE), 160);
}

TEST(end_of_a_block_is_not_inside) {
    world_begin();
    uint64_t a = world_block(32, 1), b = world_block(0, 2), c = world_block(0, 3);
    world_point(DATA, a + 32);
    world_point(DATA + 8, b);
    world_point(DATA + 16, c + 1);
    world_search();
    CHECK(world_record(LEAK_DEFINITE, 1) && world_record(LEAK_REACHABLE, 2) &&
          world_record(LEAK_DEFINITE, 3));
}

TEST(unknown_and_unaligned_words_do_not_count) {
    world_begin();
    uint64_t a = world_block(32, 1), b = world_block(32, 2), c = world_block(32, 3);
    world_point(DATA, a);
    shadow_of(DATA)[5] = 0xff;
    world_point(DATA + 20, b);
    world_point(DATA + 40, c);
    shadow_of(DATA + 40)[0] = SHADOW_NOACCESS;
    world_search();
    CHECK_EQ(world_bytes(LEAK_DEFINITE), 96);
    CHECK_EQ(world_bytes(LEAK_REACHABLE), 0);
}

TEST(memory_that_cannot_be_read_is_is_quiet) {
    world_begin();
    uint64_t a = world_block(3 * 4096, 1);
    uint64_t b = world_block(16, 2), c = world_block(16, 3);
    world.hole = (a + 4095) & ~4095ul;
    world_point(DATA, a);
    world_point(world.hole + 8, b);
    world_point(world.hole + 4096, c);
    mprotect((void *)world.hole, 4096, PROT_NONE);
    world_search();
    CHECK(world_record(LEAK_DEFINITE, 2) && world_record(LEAK_REACHABLE, 3));
}

TEST(files_may_be_shorter_than_their_mapping) {
    world_begin();
    uint64_t a = world_block(16, 1), b = world_block(16, 2);
    world_point(DATA + 4096, a);
    world_point(DATA + 8192, b);
    world.no_file = DATA + 4096;
    mprotect((void *)world.no_file, 4096, PROT_NONE);
    world_search();
    CHECK(world_record(LEAK_DEFINITE, 1) && world_record(LEAK_REACHABLE, 2));
}

TEST(declared_blocks_replace_the_one_around) {
    world_begin();
    uint64_t outer = world_block(512, 1);
    for (int i = 0; i < 2; i++)
        world.declared[world.declared_count++] =
            (struct heap_block){.start = outer + 64 + (uint64_t)i * 128,
                                .size = 40,
                                .made_at = 2 + (uint32_t)i,
                                .maker = HEAP_CLIENT};
    world_point(DATA, outer);
    world_point(DATA + 8, outer + 64);
    world_search();
    CHECK_EQ(world.result.record_count, 2);
    CHECK(world_record(LEAK_REACHABLE, 2) && world_record(LEAK_DEFINITE, 3));
}

// A chunk of a pool, and blocks carved from it; one that sticks out does not count. What is
// declared leads to blocks of the heap and is led to.
TEST(chunks_and_what_is_declared_in_them) {
    world_begin();
    uint64_t outer = world_block(512, 1), lost = world_block(16, 2), held = world_block(16, 3);
    world.chunks[world.chunk_count++] =
        (struct heap_block){.start = outer + 256, .size = 128, .made_at = 4, .maker = HEAP_CLIENT};
    world.declared[world.declared_count++] =
        (struct heap_block){.start = outer + 264, .size = 24, .made_at = 5, .maker = HEAP_CLIENT};
    world.declared[world.declared_count++] =
        (struct heap_block){.start = outer + 280, .size = 64, .made_at = 6, .maker = HEAP_CLIENT};
    world_point(DATA, outer + 264);
    world_point(outer + 264, held);
    world_point(outer + 304, lost); // in the one that does not count
    world_search();
    CHECK_EQ(world.result.record_count, 3);
    CHECK(world_record(LEAK_REACHABLE, 5) && world_record(LEAK_REACHABLE, 3) &&
          world_record(LEAK_DEFINITE, 2));
    CHECK_EQ(world_record(LEAK_REACHABLE, 3)->holder_steps, 1);
    world_point(DATA, 0);
    world_point(held, outer + 264);
    world_search();
    CHECK_EQ(world_record(LEAK_DEFINITE, 3)->cycle, 2);
    CHECK_EQ(world_record(LEAK_INDIRECT, 5)->bytes, 24);
}

// ---- lost blocks -------------------------------------------------------------------------------

TEST(indirect_bytes_belong_to_the_leader) {
    world_begin();
    uint64_t a = world_block(16, 1), b = world_block(32, 2), c = world_block(48, 2);
    world_point(c, b);
    world_point(b, a); // leaders found first join later ones
    world_search();
    const struct loss *lost = world_record(LEAK_DEFINITE, 2);
    CHECK(lost != NULL);
    CHECK_EQ(lost->blocks, 1);
    CHECK_EQ(lost->bytes, 48);
    CHECK_EQ(lost->indirect_bytes, 48);
    CHECK_EQ(world_bytes(LEAK_INDIRECT), 48);
    (void)a;
}

TEST(cycles_are_counted) {
    world_begin();
    uint64_t ring[5];
    for (int i = 0; i < 5; i++)
        ring[i] = world_block(16, 1);
    uint64_t tail = world_block(16, 2);
    for (int i = 0; i < 5; i++)
        world_point(ring[i], ring[(i + 1) % 5]);
    world_point(ring[3] + 8, tail);
    uint64_t self = world_block(16, 3);
    world_point(self, self);
    world_search();
    const struct loss *lost = world_record(LEAK_DEFINITE, 1);
    CHECK_EQ(lost->blocks, 1);
    CHECK_EQ(lost->cycle, 5);
    CHECK_EQ(lost->indirect_bytes, 80);
    CHECK_EQ(world_record(LEAK_DEFINITE, 3)->cycle, 0);
}

// How many of the blocks that large_cliques makes lead to the first, which `last` points to: each
// leads to the next, and to one more.
static uint64_t cycle_by_hand(long many, long last) {
    static bool leads[BLOCKS];
    uint64_t count = 0;
    memset(leads, 0, sizeof leads);
    leads[last] = true;
    for (bool more = true; more;) {
        more = false;
        for (long i = many - 1; i >= 0; i--) {
            bool does = leads[i] || (i + 1 < many && leads[i + 1]) ||
                        (i != last && leads[i * 7919l % many]);
            more |= does && !leads[i];
            leads[i] = does;
        }
    }
    for (long i = 0; i < many; i++)
        count += leads[i];
    return count;
}

// More members than are kept in a list.
TEST(large_cliques) {
    world_begin();
    enum { MANY = 150000 };
    for (int i = 0; i < MANY; i++)
        world_block(32, i ? 2 : 1);
    uint64_t early = world_block(16, 3), tail = world_block(16, 3);
    for (int i = 0; i < MANY; i++) {
        world_point(world.starts[i], world.starts[i * 7919l % MANY]);
        world_point(world.starts[i] + 8, i + 1 < MANY ? world.starts[i + 1] : tail);
    }
    world_point(world.starts[MANY / 2] + 16, early);
    world_search();
    CHECK_EQ(world_record(LEAK_DEFINITE, 1)->blocks, 1);
    CHECK_EQ(world_record(LEAK_DEFINITE, 1)->indirect_bytes, 32 * (MANY - 1) + 32);
    CHECK_EQ(world_record(LEAK_INDIRECT, 2)->blocks, MANY - 1);
    CHECK_EQ(world_record(LEAK_INDIRECT, 3)->blocks, 2);
    CHECK_EQ(world_record(LEAK_DEFINITE, 1)->cycle, 0);
    // Where the way back begins decides how much of it is a cycle.
    world_point(world.starts[MANY - 100], world.starts[0]);
    world_search();
    CHECK_EQ(world_record(LEAK_DEFINITE, 1)->cycle, cycle_by_hand(MANY, MANY - 100));
    // What is left of the clique's marks would be in the way of the next search.
    world_search();
    CHECK_EQ(world_record(LEAK_INDIRECT, 2)->blocks, MANY - 1);
}

// ---- heuristics --------------------------------------------------------------------------------

static void make_heuristic_blocks(void) {
    uint64_t string = world_block(24 + 10 + 1, 1), length = world_block(48, 2),
             array = world_block(8 + 60, 3);
    uint64_t object = world_block(64, 4);
    world_point(string, 7);
    world_point(string + 8, 10);
    world_point(string + 16, 0);
    world_point(length, 40);
    world_point(array, 6);
    world_point(object, CODE + 64);
    world_point(object + 32, CODE + 128);
    for (int table = 0; table < 2; table++)
        for (int i = 0; i < 3; i++)
            world_point(CODE + 64 + (uint64_t)table * 64 + (uint64_t)i * 8, i ? CODE + 4096 : 0);
    world_point(DATA, string + 24);
    world_point(DATA + 8, length + 8);
    world_point(DATA + 16, array + 8);
    world_point(DATA + 24, object + 32);
}

TEST(heuristics_make_reachable) {
    world_begin();
    make_heuristic_blocks();
    world_search();
    CHECK_EQ(leaks_last().blocks[LEAK_REACHABLE], 4);
    for (int i = 0; i < LEAK_HEURISTICS; i++)
        CHECK_EQ(world.result.heuristic_blocks[i], 1);
    CHECK_EQ(world.result.heuristic_bytes[LEAK_NEWARRAY], 68);
    // A start pointer is better than a heuristic.
    world_point(DATA + 800, world.starts[0]);
    world_search();
    CHECK_EQ(world.result.heuristic_blocks[LEAK_STDSTRING], 0);
}

TEST(heuristics_can_be_chosen) {
    world_begin();
    make_heuristic_blocks();
    world.heuristics = "stdstring,multipleinheritance";
    leaks_start();
    world_search();
    CHECK_EQ(leaks_last().blocks[LEAK_REACHABLE], 2);
    CHECK_EQ(leaks_last().blocks[LEAK_POSSIBLE], 2);
    world.heuristics = "none";
    leaks_start();
    world_search();
    CHECK_EQ(leaks_last().blocks[LEAK_POSSIBLE], 4);
}

// ---- records -----------------------------------------------------------------------------------

TEST(records_rise_in_size) {
    world_begin();
    world_block(10, 3);
    world_block(10, 4);
    world_block(30, 2);
    world_point(DATA, world_block(10, 2));
    world_block(5, 1);
    world_block(5, 1);
    world_search();
    CHECK_EQ(world.result.record_count, 5);
    const uint32_t order[] = {2, 3, 4, 1, 2};
    for (int i = 0; i < 5; i++)
        CHECK_EQ(world.records[i].stack, order[i]);
    CHECK_EQ(world.records[0].kind, LEAK_REACHABLE);
}

TEST(resolution_merges_stacks) {
    world_begin();
    world_block(16, 1);
    world_block(16, 4);
    world_block(16, 5);
    world_search();
    CHECK_EQ(world.result.record_count, 3);
    world_begin();
    world.resolution = "low";
    leaks_start();
    world_block(16, 1);
    world_block(16, 4);
    world_block(16, 5);
    world_search();
    CHECK_EQ(world.result.record_count, 2);
    world.resolution = "high";
    leaks_start();
}

TEST(deltas_compare_with_the_search_before) {
    world_begin();
    world_block(16, 1);
    world_block(16, 2);
    world_search();
    world_block(16, 1);
    world_block(16, 3);
    world_check(LEAKS_FULL, LEAKS_INCREASED);
    CHECK(world.result.is_delta);
    CHECK_EQ(world_record(LEAK_DEFINITE, 1)->old_bytes, 16);
    CHECK(!world_record(LEAK_DEFINITE, 1)->is_quiet);
    CHECK(world_record(LEAK_DEFINITE, 2)->is_quiet);
    CHECK(!world_record(LEAK_DEFINITE, 3)->is_quiet);
    world_drop_last();
    world_check(LEAKS_FULL, LEAKS_NEW);
    CHECK(world_record(LEAK_DEFINITE, 1)->is_quiet);
    CHECK(world_record(LEAK_DEFINITE, 3)->is_quiet);
    CHECK_EQ(world_record(LEAK_DEFINITE, 3)->blocks, 0);
    world_drop_last();
    world_check(LEAKS_FULL, LEAKS_CHANGED);
    CHECK(!world_record(LEAK_DEFINITE, 1)->is_quiet);
    CHECK(world_record(LEAK_DEFINITE, 3) == NULL);
}

UNIT_MAIN()
