// The allocator of memcheck, and call stacks, without an engine.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memcheck_heap_use.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/shared/stacks.h"
#include "unit.h"

static bool all_shadow(uint64_t start, size_t size, uint8_t value) {
    for (size_t i = 0; i < size; i++)
        if (*shadow_of(start + i) != value)
            return false;
    return true;
}

// Makes and frees blocks until that many bytes are behind the youngest of them.
static void free_bytes(size_t bytes) {
    for (size_t done = 0; done < bytes; done += 1000)
        drop(make(1000));
    make(8);
}

// ---- red zones ---------------------------------------------------------------------------------

// The size of red zones holds for the whole life of a heap: in a child, before anything is made.
static bool has_red_zones(size_t red_zone) {
    for (size_t size = 0; size < 5000; size += 37) {
        uint64_t block = make(size);
        struct heap_block found;
        if (block % 16 || !all_shadow(block - red_zone, red_zone, SHADOW_NOACCESS) ||
            !all_shadow(block + size, red_zone, SHADOW_NOACCESS) ||
            !heap_find(block - red_zone, &found) || make(0) == make(0))
            return false;
    }
    return true;
}

TEST(red_zones_have_the_size_asked_for) {
    static const char *const sizes[] = {"0", "1", "16", "100", "200", "4096"};
    for (unsigned i = 0; i < 6; i++) {
        restart_with("redzone-size", sizes[i]);
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(!has_red_zones(strtoul(sizes[i], NULL, 10)));
        waitpid(child, &status, 0);
        if (status)
            NOTE("red zones of %s bytes", sizes[i]);
        CHECK_EQ(status, 0);
    }
    restart_with("redzone-size", NULL);
}

// In a child: 40 MB of blocks; how far apart the last ones are, and that what is left between them
// is guarded and known.
static size_t step_in_large_heap(size_t size) {
    enum { BYTES = 40 << 20 };
    uint64_t before = 0, block = 0;
    for (size_t done = 0; done < BYTES; done += size) {
        before = block;
        block = make(size);
    }
    struct heap_block found;
    size_t step = block - before;
    if (!all_shadow(before + size, step - size, SHADOW_NOACCESS) ||
        !heap_find(before + size, &found) || found.start != before ||
        !heap_find(block - 1, &found) || (found.start != block && found.start != before))
        return 0;
    return step;
}

TEST(red_zones_of_large_heaps_are_narrower_unless_asked_for) {
    static const struct {
        size_t size, narrow, asked;
    } sizes[] = {{24, 32, 48}, {16, 32, 32}, {100, 112, 128}, {200, 208, 240}, {1000, 1008, 1136}};
    for (unsigned i = 0; i < 5; i++) {
        for (int asked = 0; asked < 2; asked++) {
            restart_with("redzone-asked", asked ? "yes" : NULL);
            int status = -1;
            pid_t child = fork();
            if (child == 0)
                _exit(step_in_large_heap(sizes[i].size) !=
                      (asked ? sizes[i].asked : sizes[i].narrow));
            waitpid(child, &status, 0);
            if (status)
                NOTE("blocks of %zu bytes", sizes[i].size);
            CHECK_EQ(status, 0);
        }
    }
    restart_with("redzone-asked", NULL);
}

// ---- blocks ------------------------------------------------------------------------------------

TEST(blocks_are_aligned_undefined_and_between_red_zones) {
    restart();
    static const size_t sizes[] = {0,      1,       8,       15,      16,     17,    24,
                                   100,    127,     128,     129,     500,    512,   513,
                                   1000,   4096,    8191,    40000,   65500,  65536, 70000,
                                   300000, 1040000, 1048576, 1100000, 9000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t alignment = 0; alignment <= 8192; alignment = alignment ? alignment * 8 : 16) {
            uint64_t block = heap_allocate(sizes[i], alignment, HEAP_MALLOC, false);
            CHECK(block);
            CHECK_EQ(block % (alignment ? alignment : 16), 0);
            CHECK(all_shadow(block, sizes[i], SHADOW_UNDEFINED));
            CHECK(all_shadow(block - 16, 16, SHADOW_NOACCESS));
            CHECK(all_shadow(block + sizes[i], 16, SHADOW_NOACCESS));
            CHECK_EQ(heap_size_of(block), sizes[i]);
            memset((void *)block, 0x5a, sizes[i]);
        }
    }
}

TEST(every_size_has_a_place_of_its_own) {
    restart();
    enum { MOST = 3000 };
    static uint64_t blocks[MOST];
    for (size_t size = 0; size < MOST; size++) {
        blocks[size] = make(size);
        memset((void *)blocks[size], (int)size, size);
    }
    for (size_t size = 0; size < MOST; size++) {
        for (size_t i = 0; i < size; i++)
            CHECK_EQ(((uint8_t *)blocks[size])[i], (uint8_t)size);
        drop(blocks[size]);
    }
    CHECK_EQ(engine_error_count, 0);
}

TEST(zeroed_blocks_are_zero_and_defined_even_when_used_before) {
    restart_with("freelist-vol", "0");
    for (unsigned round = 0; round < 40; round++) {
        size_t size = 1 + round * 3001;
        uint64_t block = heap_allocate(size, 0, HEAP_MALLOC, true);
        CHECK(all_shadow(block, size, SHADOW_DEFINED));
        for (size_t i = 0; i < size; i++)
            CHECK_EQ(((uint8_t *)block)[i], 0);
        memset((void *)block, 0xee, size);
        drop(block);
    }
    engine_set_option("freelist-vol", NULL);
}

TEST(a_fill_is_written_to_new_and_freed_blocks) {
    engine_set_option("malloc-fill", "a1");
    restart_with("free-fill", "0xF2");
    uint64_t block = make(100);
    CHECK_EQ(((uint8_t *)block)[0], 0xa1);
    CHECK_EQ(((uint8_t *)block)[99], 0xa1);
    drop(block);
    CHECK_EQ(((uint8_t *)block)[0], 0xf2);
    CHECK_EQ(((uint8_t *)block)[99], 0xf2);
    engine_set_option("malloc-fill", NULL);
    restart_with("free-fill", NULL);
}

TEST(impossible_sizes_are_refused) {
    restart();
    CHECK_EQ(make((size_t)1 << 46), 0);
    CHECK_EQ(make(SIZE_MAX), 0);
    CHECK_EQ(make((size_t)60 << 30 << 1), 0); // more than the area has
    CHECK_EQ(heap_allocate(10, (size_t)1 << 62, HEAP_MALLOC, false), 0);
}

// ---- finding -----------------------------------------------------------------------------------

TEST(a_block_is_found_by_any_address_in_and_around_it) {
    restart();
    static const size_t sizes[] = {1, 10, 16, 100, 500, 5000, 100000, 2000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct heap_block found;
        uint64_t block = make(sizes[i]), end = block + sizes[i];
        uint64_t addresses[] = {block - 16, block - 1, block,   block + sizes[i] / 2,
                                end - 1,    end,       end + 15};
        for (unsigned j = 0; j < 7; j++) {
            CHECK(heap_find(addresses[j], &found));
            CHECK_EQ(found.start, block);
            CHECK_EQ(found.size, sizes[i]);
            CHECK_EQ(found.state, HEAP_LIVE);
        }
    }
    struct heap_block found;
    CHECK(!heap_find(0, &found));
    CHECK(!heap_find(12345, &found));
    CHECK(!heap_find((uint64_t)&found, &found));
    CHECK(!heap_find(UINT64_MAX, &found));
}

TEST(live_neighbours_come_before_freed_ones_and_near_ones_before_far_ones) {
    restart();
    // The first slab of a class is spread out: fill it, so that there are neighbours.
    uint64_t blocks[600];
    for (unsigned i = 0; i < 600; i++)
        blocks[i] = make(1200);
    unsigned pairs = 0;
    for (unsigned i = 1; i < 600; i++) {
        uint64_t a = blocks[i - 1], b = blocks[i];
        if (b < a || b - a > 1300)
            continue;
        struct heap_block found;
        CHECK(heap_find(a + 1200, &found) && found.start == a);
        CHECK(heap_find(b - 1, &found) && found.start == b);
        if (pairs++ == 3) {
            drop(a);
            CHECK(heap_find(a + 1200, &found) && found.start == b); // live
            CHECK(heap_find(a + 1199, &found) && found.start == a); // inside
            CHECK_EQ(found.state, HEAP_FREED);
            break;
        }
    }
    CHECK(pairs == 4);
}

TEST(who_made_and_freed_a_block_is_known) {
    restart();
    engine_stack[0] = 0x1000;
    engine_stack[1] = 0x2000;
    uint64_t block = heap_allocate(40, 64, HEAP_NEW_ARRAY, false);
    engine_stack[0] = 0x3000;
    heap_free(block, &(struct heap_claim){HEAP_NEW_ARRAY, "delete[]", "", HEAP_ANY, HEAP_ANY});
    struct heap_block found;
    const uint64_t *pcs;
    CHECK(heap_find(block + 5, &found));
    CHECK_EQ(found.state, HEAP_FREED);
    CHECK_EQ(found.maker, HEAP_NEW_ARRAY);
    CHECK_EQ(found.alignment, 64);
    CHECK_EQ(stack_pcs(found.made_at, &pcs), 2);
    CHECK_EQ(pcs[0], 0x1000);
    CHECK_EQ(pcs[1], 0x2000);
    CHECK_EQ(stack_pcs(found.freed_at, &pcs), 2);
    CHECK_EQ(pcs[0], 0x3000);
}

TEST(stacks_are_kept_as_asked) {
    static const struct {
        const char *kept;
        bool made, freed, made_when_freed;
    } cases[] = {{"alloc", true, false, true},
                 {"free", false, true, false},
                 {"alloc-and-free", true, true, true},
                 {"alloc-then-free", true, true, false},
                 {"none", false, false, false}};
    engine_stack[0] = 0x4000;
    for (unsigned i = 0; i < 5; i++) {
        struct heap_block found;
        restart_with("keep-stacktraces", cases[i].kept);
        uint64_t block = make(10);
        CHECK(heap_find(block, &found));
        CHECK_EQ(found.made_at != 0, cases[i].made);
        drop(block);
        CHECK(heap_find(block, &found));
        CHECK_EQ(found.made_at != 0, cases[i].made_when_freed);
        CHECK_EQ(found.freed_at != 0, cases[i].freed);
    }
    restart_with("keep-stacktraces", NULL);
}

// ---- quarantine --------------------------------------------------------------------------------

TEST(freed_blocks_are_kept_back_for_the_volume_and_no_longer) {
    restart_with("freelist-vol", "100000");
    for (size_t size = 10; size < 90000; size = size * 3 + 1) {
        uint64_t block = make(size);
        free_bytes(200000);
        drop(block);
        CHECK(all_shadow(block, size, SHADOW_NOACCESS));
        struct heap_block found;
        free_bytes(100000 - size - 2000);
        CHECK(heap_find(block, &found));
        CHECK_EQ(found.state, HEAP_FREED);
        free_bytes(size + 4000);
        CHECK(!heap_find(block, &found) || found.start != block || found.state == HEAP_LIVE);
    }
    restart_with("freelist-vol", NULL);
}

TEST(large_blocks_leave_the_quarantine_first) {
    engine_set_option("freelist-big-blocks", "5000");
    restart_with("freelist-vol", "20000");
    free_bytes(100000);
    uint64_t small = make(100), large = make(6000);
    drop(small);
    drop(large);
    drop(make(4000));
    drop(make(4000));
    drop(make(4000));
    drop(make(4000));
    make(1);
    struct heap_block found;
    CHECK(heap_find(small, &found) && found.state == HEAP_FREED);
    CHECK(!heap_find(large, &found) || found.start != large);
    engine_set_option("freelist-big-blocks", NULL);
    restart_with("freelist-vol", NULL);
}

TEST(huge_blocks_are_given_back_with_the_next_allocation) {
    restart_with("freelist-vol", "1000000");
    size_t before = engine_mapped;
    uint64_t block = make(200 << 20);
    CHECK(engine_mapped >= before + (200 << 20));
    drop(block);
    struct heap_block found;
    CHECK(heap_find(block + 1000, &found) && found.state == HEAP_FREED);
    make(1);
    CHECK(engine_mapped <= before + (4 << 20));
    CHECK(!heap_find(block + 1000, &found));
    restart_with("freelist-vol", NULL);
}

TEST(memory_of_freed_blocks_is_given_back_or_used_again) {
    enum { BLOCKS = 100000 };
    static uint64_t blocks[BLOCKS];
    engine_set_option("redzone-asked", "yes"); // blocks of one size are in slots of one size
    restart_with("freelist-vol", "0");
    make(1);
    size_t before = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            blocks[i] = make(100 + 200 * round);
        for (unsigned i = 0; i < BLOCKS; i++)
            drop(blocks[i]);
        make(1);
        make(1);
        if (round == 0)
            before = engine_mapped; // what is kept for use
    }
    // The last round alone is 57 MB, and the first was 13.
    CHECK(before < 16 << 20);
    CHECK(engine_mapped <= before + (8 << 20));
    engine_set_option("redzone-asked", NULL);
    restart_with("freelist-vol", NULL);
}

TEST(little_memory_is_wasted) {
    enum { BLOCKS = 20000 };
    restart();
    for (size_t size = 40; size < 30000; size = size * 2 + 24) {
        size_t before = engine_mapped;
        for (unsigned i = 0; i < BLOCKS; i++)
            make(size);
        // Red zones, an eighth for what sizes are rounded up to, and a little at the ends of slabs.
        size_t most = BLOCKS * (size + 48) / 100 * 116 + (4 << 20);
        if (engine_mapped - before > most)
            NOTE("%zu bytes each of size %zu", (engine_mapped - before) / BLOCKS, size);
        CHECK(engine_mapped - before <= most);
    }
}

// ---- errors ------------------------------------------------------------------------------------

TEST(wrong_frees_are_reported_and_change_nothing) {
    restart();
    uint64_t block = make(100), huge = make(3000000);
    drop(block + 16);
    drop(0x1234);
    drop(huge + 4096);
    CHECK_EQ(engine_error_count, 3);
    CHECK_EQ(engine_errors[0].address, block + 16);
    CHECK_STR(engine_errors[0].what, "free");
    drop(block);
    drop(huge);
    CHECK_EQ(engine_error_count, 3);
    drop(block);
    drop(huge);
    CHECK_EQ(engine_error_count, 5);
    CHECK_EQ(heap_resize(block, 10), 0);
    CHECK_EQ(engine_error_count, 6);
}

TEST(mismatches_are_reported_once_and_freed) {
    restart();
    uint64_t block = heap_allocate(10, 0, HEAP_NEW, false);
    drop(block);
    CHECK_EQ(engine_error_count, 1);
    CHECK_STR(engine_errors[0].what, "mismatch");
    CHECK_EQ(heap_size_of(block), 0);
    restart_with("show-mismatched-frees", "no");
    drop(heap_allocate(10, 0, HEAP_NEW_ARRAY, false));
    CHECK_EQ(engine_error_count, 0);
    restart_with("show-mismatched-frees", NULL);
}

// ---- resizing ----------------------------------------------------------------------------------

TEST(resizing_moves_bytes_and_what_is_known_of_them) {
    restart();
    uint64_t block = make(1000);
    memset((void *)block, 7, 1000);
    shadow_make_defined(block, 400);
    shadow_set_bits(block + 10, 0x0f);
    uint64_t moved = heap_resize(block, 500000);
    CHECK(moved && moved != block);
    CHECK_EQ(((uint8_t *)moved)[999], 7);
    CHECK(all_shadow(moved, 10, 0));
    CHECK_EQ(*shadow_of(moved + 10), 0x0f);
    CHECK(all_shadow(moved + 400, 500000 - 400, SHADOW_UNDEFINED));
    CHECK(all_shadow(block, 1000, SHADOW_NOACCESS));
    uint64_t smaller = heap_resize(moved, 5);
    CHECK_EQ(((uint8_t *)smaller)[4], 7);
    CHECK_EQ(heap_size_of(smaller), 5);
    CHECK(all_shadow(smaller + 5, 16, SHADOW_NOACCESS));
    CHECK_EQ(engine_error_count, 0);
}

static uint64_t known_state(uint64_t block, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + *shadow_of(block + i) + ((uint8_t *)block)[i];
    return sum;
}

// Returns how often the block has moved.
static unsigned grow_in_steps(size_t size, unsigned steps) {
    uint64_t block = make(size);
    struct heap_block found;
    unsigned moves = 0;
    memset((void *)block, 9, size);
    shadow_make_defined(block + size / 2, size / 4);
    for (unsigned i = 0; i < steps; i++) {
        size_t step = 1 + (i * 7919) % (size / 50);
        uint64_t state = known_state(block, size), after = heap_resize(block, size + step);
        CHECK_EQ(known_state(after, size), state);
        CHECK(all_shadow(after + size, step, SHADOW_UNDEFINED));
        moves += after != block;
        if (after != block)
            CHECK(all_shadow(block, size, SHADOW_NOACCESS));
        block = after;
        size += step;
        shadow_set_bits(block + size - 1, 0xa5); // looks like the code for no access
        memset((void *)(block + size - step), i, step);
        CHECK(all_shadow(block - 16, 16, SHADOW_NOACCESS));
        CHECK(all_shadow(block + size, 16, SHADOW_NOACCESS));
        CHECK_EQ(heap_size_of(block), size);
        CHECK(heap_find(block + size + 7, &found) && found.start == block && found.size == size);
    }
    uint64_t bad;
    CHECK_EQ(shadow_check_addressable(block, size, &bad), SHADOW_FINE);
    drop(block);
    CHECK(all_shadow(block, size, SHADOW_NOACCESS));
    CHECK_EQ(shadow_check_addressable(block + size - 1, 1, &bad), SHADOW_BAD_ADDRESS);
    return moves;
}

TEST(resizing_in_steps_moves_seldom_and_is_exact) {
    restart();
    static const size_t sizes[] = {1100, 4000, 60000, 70000, 900000, 1100000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned moves = grow_in_steps(sizes[i], 100);
        if (moves > 8)
            NOTE("from %zu bytes on, %u moves", sizes[i], moves);
        CHECK(moves >= 1 && moves <= 8);
    }
    CHECK_EQ(engine_error_count, 0);
}

TEST(small_blocks_always_move) {
    restart();
    for (uint64_t block = make(100), size = 101; size < 1000; size++) {
        uint64_t after = heap_resize(block, size);
        CHECK(after != block);
        block = after;
    }
}

// ---- all blocks --------------------------------------------------------------------------------

TEST(totals_count_everything) {
    restart();
    struct heap_totals before = heap_totals();
    uint64_t a = make(100), b = make(3000000);
    a = heap_resize(a, 150);
    drop(b);
    struct heap_totals after = heap_totals();
    CHECK_EQ(after.allocations - before.allocations, 3);
    CHECK_EQ(after.frees - before.frees, 2);
    CHECK_EQ(after.bytes - before.bytes, 100 + 3000000 + 150);
    CHECK_EQ(after.live_blocks - before.live_blocks, 1);
    CHECK_EQ(after.live_bytes - before.live_bytes, 150);
}

TEST(live_blocks_are_listed_in_order_and_in_portions) {
    restart();
    for (unsigned i = 0; i < 500; i++)
        make(i * i);
    uint64_t area = make(10000);
    heap_declare(area + 100, 50, 0, false);
    heap_declare(area + 200, 50, 0, false);
    drop(make(77));
    size_t count = live_count();
    CHECK_EQ(count, heap_totals().live_blocks);
    struct heap_block *all = calloc(count + 1, sizeof *all), some[7];
    CHECK_EQ(heap_list_live(0, all, count + 1), count);
    unsigned declared = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(all[i].state, HEAP_LIVE);
        CHECK(i == 0 || all[i].start > all[i - 1].start);
        declared += all[i].maker == HEAP_CLIENT;
    }
    CHECK_EQ(declared, 2);
    size_t listed = 0, got;
    for (uint64_t from = 0; (got = heap_list_live(from, some, 7)); listed += got) {
        for (size_t i = 0; i < got; i++)
            CHECK_EQ(some[i].start, all[listed + i].start);
        from = some[got - 1].start + 1;
    }
    CHECK_EQ(listed, count);
    free(all);
    heap_undeclare(area + 100, 0);
    heap_undeclare(area + 200, 0);
}

TEST(memory_of_the_heap_is_known) {
    restart();
    uint64_t block = make(10), huge = make(5000000), end, next;
    CHECK(heap_owns(block, &end));
    CHECK(end > block && end % 4096 == 0);
    CHECK(heap_owns(huge + 4000000, &end));
    CHECK(!heap_owns(0x1000, &end));
    CHECK(heap_owns(end, &next));
    CHECK(!heap_owns((uint64_t)&end, &end));
    CHECK_EQ(end, UINT64_MAX);
}

// ---- declared blocks ---------------------------------------------------------------------------

TEST(declared_blocks_are_found_in_memory_of_any_kind) {
    restart();
    static _Alignas(16) char own[1000];
    uint64_t start = (uint64_t)own + 100;
    struct heap_block found;
    heap_declare(start, 50, 8, false);
    CHECK(heap_find(start + 49, &found) && found.start == start && found.maker == HEAP_CLIENT);
    CHECK(heap_find(start - 8, &found));
    CHECK(heap_find(start + 57, &found));
    CHECK(!heap_find(start + 58, &found));
    CHECK(heap_redeclare(start, 50, 60, 8));
    CHECK(!heap_redeclare(start, 50, 60, 8));
    CHECK(heap_undeclare(start, 8));
    CHECK(!heap_undeclare(start, 8));
    CHECK(heap_find(start, &found) && found.state == HEAP_FREED && found.size == 60);
    heap_declare(start + 20, 10, 0, true); // takes the place of the freed one
    CHECK(!heap_find(start, &found));
    CHECK(heap_undeclare(start + 20, 0));
}

TEST(many_declared_blocks_come_and_go) {
    restart();
    enum { BLOCKS = 20000, EACH = 64 };
    uint64_t area = make(BLOCKS * EACH);
    for (unsigned i = 0; i < BLOCKS; i++)
        heap_declare(area + i * 7919ul % BLOCKS * EACH, 32, 16, false);
    unsigned live = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct heap_block found;
        if (heap_find(area + i * EACH + 5, &found) && found.maker == HEAP_CLIENT) {
            CHECK_EQ(found.start, area + i * EACH);
            live++;
            CHECK(heap_undeclare(found.start, 16));
        }
    }
    CHECK_EQ(live, BLOCKS);
    // Others take the place of the freed ones, which are forgotten.
    for (unsigned i = 0; i < BLOCKS; i++)
        heap_declare(area + i * 7919ul % BLOCKS * EACH + 8, 32, 16, false);
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct heap_block found;
        CHECK(heap_find(area + i * EACH + 9, &found));
        CHECK_EQ(found.start, area + i * EACH + 8);
        CHECK_EQ(found.state, HEAP_LIVE);
        CHECK(heap_undeclare(found.start, 16));
    }
    CHECK_EQ(heap_totals().live_blocks, live_count());
    drop(area);
}

// ---- stacks ------------------------------------------------------------------------------------

TEST(a_stack_has_one_number) {
    restart();
    enum { STACKS = 50000 };
    static uint32_t numbers[STACKS];
    uint64_t pcs[12] = {0};
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < STACKS; i++) {
            pcs[i % 5] = 0x400000 + i;
            size_t count = 5 + i % 8;
            uint32_t number = stack_intern(pcs, count);
            CHECK(number && number < 1u << 30);
            if (round == 0)
                numbers[i] = number;
            else
                CHECK_EQ(number, numbers[i]);
            const uint64_t *kept;
            CHECK_EQ(stack_pcs(number, &kept), count);
            CHECK(memcmp(kept, pcs, count * sizeof *pcs) == 0);
        }
        memset(pcs, 0, sizeof pcs);
    }
    CHECK_EQ(stack_intern(pcs, 0), 0);
}

UNIT_MAIN_APART()
