// The leak search over a heap made by hand: memory at the addresses where targets have it, with its
// shadow, and stand-ins for what the engine, the allocator and the reports do.
#include "tools/memcheck/leaks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/errors.h"
#include "tools/memcheck/heap.h"
#include "tools/memcheck/leaks_search.h"
#include "tools/memcheck/pools.h"
#include "tools/memcheck/stacks.h"
#include "unit.h"

#define HEAP  0x201000000000ul
#define DATA  0x202000000000ul
#define CODE  0x203000000000ul // a table of functions, and the functions
#define STACK 0x204000000000ul
enum { SIZE = 64 << 20, DATA_SIZE = 128 << 10, STACK_SIZE = 1 << 20, BLOCKS = 400000, THREAD = 3 };

// ---- the world ---------------------------------------------------------------------------------

// Slots of two sizes, each in half of the heap.
enum {
    SEGMENTS = SIZE >> SEGMENT_BITS,
    SMALL = 64,
    LARGE = 16 << 10,
    SMALL_SLOTS = (1 << SEGMENT_BITS) / SMALL - 1,
    LARGE_SLOTS = (1 << SEGMENT_BITS) / LARGE - 1,
};
_Atomic(union cell *) *heap_cells;
static struct segment segments[SEGMENTS];
static struct slab slabs[SEGMENTS];
static struct block_note notes[SEGMENTS][SMALL_SLOTS];
static size_t small_count, large_count, block_count;
static uint64_t starts[BLOCKS]; // in the order in which they were made
static struct heap_block declared[8], chunks[8];
static size_t declared_count, chunk_count;
static uint64_t registers[16];
static const char *heuristics, *resolution;
static uint64_t hole;    // a page of the heap that cannot be read
static uint64_t no_file; // a page beyond the end of a file
static struct loss_record records[1000];
static struct leak_search result;
static uint64_t stacks[8][5] = {{0},
                                {1, 10, 100, 1000},
                                {2, 20, 200, 2000},
                                {3, 30, 300, 3000},
                                {1, 10, 101, 1001},
                                {1, 11, 111, 1111}};

const char *tool_option(const char *name) {
    if (strcmp(name, "leak-check-heuristics") == 0)
        return heuristics;
    if (strcmp(name, "leak-resolution") == 0)
        return resolution;
    return NULL;
}

void tool_say(const char *format, ...) {}

void tool_stop_threads(void) {}

void tool_resume_threads(void) {}

void tool_each_thread(void (*function)(const struct tool_thread *, void *), void *argument) {
    struct tool_thread thread = {.id = THREAD,
                                 .registers = registers,
                                 .stack_start = STACK,
                                 .stack_end = STACK + STACK_SIZE};
    function(&thread, argument);
}

bool tool_mapping_at(uint64_t address, struct tool_mapping *mapping) {
    int all = PROT_READ | PROT_WRITE;
    struct tool_mapping mappings[] = {
        {.start = HEAP, .end = hole ? hole : HEAP + SIZE, .prot = all},
        {.start = hole, .end = hole + 4096, .prot = PROT_NONE},
        {.start = hole ? hole + 4096 : 0, .end = hole ? HEAP + SIZE : 0, .prot = all},
        {.start = DATA, .end = DATA + DATA_SIZE, .prot = all, .is_file = true, .is_module = true},
        {.start = CODE, .end = CODE + SIZE, .prot = PROT_READ | PROT_EXEC, .is_file = true},
        {.start = STACK, .end = STACK + STACK_SIZE, .prot = all, .is_stack = true},
    };
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        if (mappings[i].start && mappings[i].end > address) {
            *mapping = mappings[i];
            return true;
        }
    }
    return false;
}

long tool_read(void *to, uint64_t from, size_t size) {
    if (from - no_file < 4096)
        return -EFAULT;
    memcpy(to, (const void *)from, size);
    return 0;
}

bool tool_frame_of(uint64_t address, struct tool_frame *frame) {
    *frame = (struct tool_frame){.thread = THREAD, .pc = 0x77};
    return address - STACK < STACK_SIZE;
}

struct heap_totals heap_totals(void) {
    return (struct heap_totals){.live_blocks = block_count};
}

void cells_in_use(uint64_t *first, uint64_t *last) {
    *first = HEAP >> SEGMENT_BITS;
    *last = (HEAP + SIZE - 1) >> SEGMENT_BITS;
}

bool declared_next(uint64_t from, struct heap_block *block) {
    const struct heap_block *next = NULL;
    for (size_t i = 0; i < declared_count; i++)
        if (declared[i].start >= from && (!next || declared[i].start < next->start))
            next = &declared[i];
    if (next)
        *block = *next;
    return next;
}

bool heap_owns(uint64_t address, uint64_t *end) {
    *end = address < HEAP ? HEAP : address < HEAP + SIZE ? HEAP + SIZE : UINT64_MAX;
    return address - HEAP < SIZE;
}

size_t pools_chunk_count(void) {
    return chunk_count;
}

void pools_add_chunks(struct leak_blocks *to) {
    for (size_t i = 0; i < chunk_count; i++)
        blocks_add(to, chunks[i].start, chunks[i].size, chunks[i].made_at);
}

size_t stack_pcs(uint32_t stack, const uint64_t **pcs) {
    *pcs = stacks[stack];
    return 4;
}

void errors_leaks(const struct leak_search *search) {
    result = *search;
    memcpy(records, search->records, search->record_count * sizeof *records);
    result.records = records;
}

static void map(uint64_t start) {
    uint64_t shadow = (start + TOOL_SHADOW_DISTANCE) & ~4095ul;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    CHECK(mmap((void *)start, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0) == (void *)start);
    CHECK(mmap((void *)shadow, SIZE + 8192, PROT_READ | PROT_WRITE, flags, -1, 0) ==
          (void *)shadow);
}

static void empty_heap(void) {
    for (size_t i = 0; i < SEGMENTS; i++)
        slabs[i].count = 0;
    small_count = large_count = block_count = declared_count = chunk_count = 0;
}

static void make_slabs(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!heap_cells)
        heap_cells =
            mmap(NULL, sizeof *heap_cells << CELL_BITS, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (size_t i = 0; i < SEGMENTS; i++) {
        uint64_t start = HEAP + (i << SEGMENT_BITS);
        uint32_t size = i < SEGMENTS / 2 ? SMALL : LARGE;
        slabs[i] = (struct slab){.start = start,
                                 .first = start + 16,
                                 .reciprocal = (1ul << RECIPROCAL_BITS) / size,
                                 .slot_size = size,
                                 .notes = notes[i],
                                 .units = UNITS};
        segments[i].start = start;
        segments[i].end = start + (1 << SEGMENT_BITS);
        for (size_t unit = 0; unit < UNITS; unit++)
            segments[i].slabs[unit] = &slabs[i];
        heap_cells[start >> SEGMENT_BITS] = (union cell *)&segments[i];
    }
    empty_heap();
}

static void begin(void) {
    map(HEAP);
    map(DATA);
    map(CODE);
    map(STACK);
    make_slabs();
    memset(registers, 0, sizeof registers);
    registers[4] = STACK + STACK_SIZE / 2;
    hole = no_file = 0;
    heuristics = resolution = NULL;
    leaks_start();
    // Forgets what the test before has left.
    leaks_check(LEAKS_FULL, LEAKS_ALL);
    leaks_check(LEAKS_FULL, LEAKS_ALL);
}

static struct block_note *note_of(uint64_t start) {
    struct slab *slab = &slabs[(start - HEAP) >> SEGMENT_BITS];
    return &slab->notes[slot_of(slab, start)];
}

static uint64_t block(size_t size, uint32_t stack) {
    bool is_small = size <= SMALL - 16;
    size_t *count = is_small ? &small_count : &large_count;
    size_t each = is_small ? SMALL_SLOTS : LARGE_SLOTS;
    struct slab *slab = &slabs[(is_small ? 0 : SEGMENTS / 2) + *count / each];
    uint64_t start = slot_block(slab, *count % each, 16);
    slab->count = *count % each + 1;
    ++*count;
    *note_of(start) =
        (struct block_note){.made_at = stack, .word = note_word(size, HEAP_MALLOC, 4)};
    starts[block_count++] = start;
    return start;
}

static void drop_last(void) {
    note_of(starts[--block_count])->word = 0; // the slot stays
}

static void point(uint64_t from, uint64_t to) {
    *(uint64_t *)from = to;
}

static const struct loss_record *record(enum leak_kind kind, uint32_t stack) {
    for (size_t i = 0; i < result.record_count; i++)
        if (records[i].kind == kind && records[i].stack == stack)
            return &records[i];
    return NULL;
}

static uint64_t bytes(enum leak_kind kind) {
    return leaks_last().bytes[kind];
}

static void search(void) {
    leaks_check(LEAKS_FULL, LEAKS_ALL);
}

// ---- kinds -------------------------------------------------------------------------------------

TEST(nothing_points_to_it) {
    begin();
    block(24, 1);
    search();
    CHECK_EQ(result.record_count, 1);
    CHECK_EQ(records[0].kind, LEAK_DEFINITE);
    CHECK_EQ(records[0].bytes, 24);
    CHECK_EQ(records[0].cycle, 0);
}

TEST(chain_from_data_is_reachable) {
    begin();
    uint64_t a = block(16, 1), b = block(16, 2), c = block(16, 3);
    point(DATA + 800, a);
    point(a + 8, b);
    point(b, c);
    search();
    CHECK_EQ(bytes(LEAK_REACHABLE), 48);
    const struct loss_record *last = record(LEAK_REACHABLE, 3);
    CHECK(last != NULL);
    CHECK_EQ(last->holder, HOLDER_DATA);
    CHECK_EQ(last->holder_address, DATA + 800);
    CHECK_EQ(last->holder_steps, 2);
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder_steps, 0);
}

TEST(nearest_holder_is_told) {
    begin();
    uint64_t a = block(16, 1), b = block(16, 1), c = block(16, 1);
    point(DATA + 8, c);
    point(c, b);
    point(b, a);
    search();
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder_steps, 0);
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder_address, DATA + 8);
}

TEST(registers_and_stack_hold) {
    begin();
    uint64_t a = block(16, 1), b = block(16, 2), c = block(16, 3);
    registers[9] = a;
    point(STACK + STACK_SIZE / 2 + 64, b);
    point(STACK + STACK_SIZE / 2 - 256, c); // below the stack pointer
    search();
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder, HOLDER_REGISTER);
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder_address, 9);
    CHECK_EQ(record(LEAK_REACHABLE, 1)->holder_thread, THREAD);
    CHECK_EQ(record(LEAK_REACHABLE, 2)->holder, HOLDER_STACK);
    CHECK_EQ(record(LEAK_REACHABLE, 2)->holder_pc, 0x77);
    CHECK(record(LEAK_DEFINITE, 3) != NULL);
}

TEST(interior_pointers_are_possible_until_a_start_is_found) {
    begin();
    uint64_t a = block(64, 1), b = block(64, 2), c = block(32, 3);
    point(DATA, a + 17);
    point(DATA + 8, b + 16);
    point(a + 24, c);
    search();
    CHECK(record(LEAK_POSSIBLE, 1) && record(LEAK_POSSIBLE, 2));
    CHECK(record(LEAK_POSSIBLE, 3) != NULL); // the way there is doubtful
    point(c + 8, b);
    point(DATA + 80000, a);
    search();
    CHECK_EQ(bytes(LEAK_REACHABLE), 160);
}

TEST(end_of_a_block_is_not_inside) {
    begin();
    uint64_t a = block(32, 1), b = block(0, 2), c = block(0, 3);
    point(DATA, a + 32);
    point(DATA + 8, b);
    point(DATA + 16, c + 1);
    search();
    CHECK(record(LEAK_DEFINITE, 1) && record(LEAK_REACHABLE, 2) && record(LEAK_DEFINITE, 3));
}

TEST(unknown_and_unaligned_words_do_not_count) {
    begin();
    uint64_t a = block(32, 1), b = block(32, 2), c = block(32, 3);
    point(DATA, a);
    shadow_of(DATA)[5] = 0xff;
    point(DATA + 20, b);
    point(DATA + 40, c);
    shadow_of(DATA + 40)[0] = SHADOW_NOACCESS;
    search();
    CHECK_EQ(bytes(LEAK_DEFINITE), 96);
    CHECK_EQ(bytes(LEAK_REACHABLE), 0);
}

TEST(memory_that_cannot_be_read_is_passed_over) {
    begin();
    uint64_t a = block(3 * 4096, 1);
    uint64_t b = block(16, 2), c = block(16, 3);
    hole = (a + 4095) & ~4095ul;
    point(DATA, a);
    point(hole + 8, b);
    point(hole + 4096, c);
    mprotect((void *)hole, 4096, PROT_NONE);
    search();
    CHECK(record(LEAK_DEFINITE, 2) && record(LEAK_REACHABLE, 3));
}

TEST(files_may_be_shorter_than_their_mapping) {
    begin();
    uint64_t a = block(16, 1), b = block(16, 2);
    point(DATA + 4096, a);
    point(DATA + 8192, b);
    no_file = DATA + 4096;
    mprotect((void *)no_file, 4096, PROT_NONE);
    search();
    CHECK(record(LEAK_DEFINITE, 1) && record(LEAK_REACHABLE, 2));
}

TEST(declared_blocks_replace_the_one_around) {
    begin();
    uint64_t outer = block(512, 1);
    for (int i = 0; i < 2; i++)
        declared[declared_count++] = (struct heap_block){.start = outer + 64 + (uint64_t)i * 128,
                                                         .size = 40,
                                                         .made_at = 2 + (uint32_t)i,
                                                         .maker = HEAP_CLIENT};
    point(DATA, outer);
    point(DATA + 8, outer + 64);
    search();
    CHECK_EQ(result.record_count, 2);
    CHECK(record(LEAK_REACHABLE, 2) && record(LEAK_DEFINITE, 3));
}

// A chunk of a pool, and blocks carved from it; one that sticks out does not count. What is
// declared leads to blocks of the heap and is led to.
TEST(chunks_and_what_is_declared_in_them) {
    begin();
    uint64_t outer = block(512, 1), lost = block(16, 2), held = block(16, 3);
    chunks[chunk_count++] =
        (struct heap_block){.start = outer + 256, .size = 128, .made_at = 4, .maker = HEAP_CLIENT};
    declared[declared_count++] =
        (struct heap_block){.start = outer + 264, .size = 24, .made_at = 5, .maker = HEAP_CLIENT};
    declared[declared_count++] =
        (struct heap_block){.start = outer + 280, .size = 64, .made_at = 6, .maker = HEAP_CLIENT};
    point(DATA, outer + 264);
    point(outer + 264, held);
    point(outer + 304, lost); // in the one that does not count
    search();
    CHECK_EQ(result.record_count, 3);
    CHECK(record(LEAK_REACHABLE, 5) && record(LEAK_REACHABLE, 3) && record(LEAK_DEFINITE, 2));
    CHECK_EQ(record(LEAK_REACHABLE, 3)->holder_steps, 1);
    point(DATA, 0);
    point(held, outer + 264);
    search();
    CHECK_EQ(record(LEAK_DEFINITE, 3)->cycle, 2);
    CHECK_EQ(record(LEAK_INDIRECT, 5)->bytes, 24);
}

// ---- lost blocks -------------------------------------------------------------------------------

TEST(indirect_bytes_belong_to_the_leader) {
    begin();
    uint64_t a = block(16, 1), b = block(32, 2), c = block(48, 2);
    point(c, b);
    point(b, a); // leaders found first join later ones
    search();
    const struct loss_record *lost = record(LEAK_DEFINITE, 2);
    CHECK(lost != NULL);
    CHECK_EQ(lost->blocks, 1);
    CHECK_EQ(lost->bytes, 48);
    CHECK_EQ(lost->indirect_bytes, 48);
    CHECK_EQ(bytes(LEAK_INDIRECT), 48);
    (void)a;
}

TEST(cycles_are_counted) {
    begin();
    uint64_t ring[5];
    for (int i = 0; i < 5; i++)
        ring[i] = block(16, 1);
    uint64_t tail = block(16, 2);
    for (int i = 0; i < 5; i++)
        point(ring[i], ring[(i + 1) % 5]);
    point(ring[3] + 8, tail);
    uint64_t self = block(16, 3);
    point(self, self);
    search();
    const struct loss_record *lost = record(LEAK_DEFINITE, 1);
    CHECK_EQ(lost->blocks, 1);
    CHECK_EQ(lost->cycle, 5);
    CHECK_EQ(lost->indirect_bytes, 80);
    CHECK_EQ(record(LEAK_DEFINITE, 3)->cycle, 0);
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
    begin();
    enum { MANY = 150000 };
    for (int i = 0; i < MANY; i++)
        block(32, i ? 2 : 1);
    uint64_t early = block(16, 3), tail = block(16, 3);
    for (int i = 0; i < MANY; i++) {
        point(starts[i], starts[i * 7919l % MANY]);
        point(starts[i] + 8, i + 1 < MANY ? starts[i + 1] : tail);
    }
    point(starts[MANY / 2] + 16, early);
    search();
    CHECK_EQ(record(LEAK_DEFINITE, 1)->blocks, 1);
    CHECK_EQ(record(LEAK_DEFINITE, 1)->indirect_bytes, 32 * (MANY - 1) + 32);
    CHECK_EQ(record(LEAK_INDIRECT, 2)->blocks, MANY - 1);
    CHECK_EQ(record(LEAK_INDIRECT, 3)->blocks, 2);
    CHECK_EQ(record(LEAK_DEFINITE, 1)->cycle, 0);
    // Where the way back begins decides how much of it is a cycle.
    point(starts[MANY - 100], starts[0]);
    search();
    CHECK_EQ(record(LEAK_DEFINITE, 1)->cycle, cycle_by_hand(MANY, MANY - 100));
    // What is left of the clique's marks would be in the way of the next search.
    search();
    CHECK_EQ(record(LEAK_INDIRECT, 2)->blocks, MANY - 1);
}

// ---- heuristics --------------------------------------------------------------------------------

static void make_heuristic_blocks(void) {
    uint64_t string = block(24 + 10 + 1, 1), length = block(48, 2), array = block(8 + 60, 3);
    uint64_t object = block(64, 4);
    point(string, 7);
    point(string + 8, 10);
    point(string + 16, 0);
    point(length, 40);
    point(array, 6);
    point(object, CODE + 64);
    point(object + 32, CODE + 128);
    for (int table = 0; table < 2; table++)
        for (int i = 0; i < 3; i++)
            point(CODE + 64 + (uint64_t)table * 64 + (uint64_t)i * 8, i ? CODE + 4096 : 0);
    point(DATA, string + 24);
    point(DATA + 8, length + 8);
    point(DATA + 16, array + 8);
    point(DATA + 24, object + 32);
}

TEST(heuristics_make_reachable) {
    begin();
    make_heuristic_blocks();
    search();
    CHECK_EQ(leaks_last().blocks[LEAK_REACHABLE], 4);
    for (int i = 0; i < LEAK_HEURISTICS; i++)
        CHECK_EQ(result.heuristic_blocks[i], 1);
    CHECK_EQ(result.heuristic_bytes[LEAK_NEWARRAY], 68);
    // A start pointer is better than a heuristic.
    point(DATA + 800, starts[0]);
    search();
    CHECK_EQ(result.heuristic_blocks[LEAK_STDSTRING], 0);
}

TEST(heuristics_can_be_chosen) {
    begin();
    make_heuristic_blocks();
    heuristics = "stdstring,multipleinheritance";
    leaks_start();
    search();
    CHECK_EQ(leaks_last().blocks[LEAK_REACHABLE], 2);
    CHECK_EQ(leaks_last().blocks[LEAK_POSSIBLE], 2);
    heuristics = "none";
    leaks_start();
    search();
    CHECK_EQ(leaks_last().blocks[LEAK_POSSIBLE], 4);
}

// ---- records -----------------------------------------------------------------------------------

TEST(records_rise_in_size) {
    begin();
    block(10, 3);
    block(10, 4);
    block(30, 2);
    point(DATA, block(10, 2));
    block(5, 1);
    block(5, 1);
    search();
    CHECK_EQ(result.record_count, 5);
    const uint32_t order[] = {2, 3, 4, 1, 2};
    for (int i = 0; i < 5; i++)
        CHECK_EQ(records[i].stack, order[i]);
    CHECK_EQ(records[0].kind, LEAK_REACHABLE);
}

TEST(resolution_merges_stacks) {
    begin();
    block(16, 1);
    block(16, 4);
    block(16, 5);
    search();
    CHECK_EQ(result.record_count, 3);
    resolution = "low";
    begin();
    resolution = "low";
    leaks_start();
    block(16, 1);
    block(16, 4);
    block(16, 5);
    search();
    CHECK_EQ(result.record_count, 2);
    resolution = "high";
    leaks_start();
}

TEST(deltas_compare_with_the_search_before) {
    begin();
    block(16, 1);
    block(16, 2);
    search();
    block(16, 1);
    block(16, 3);
    leaks_check(LEAKS_FULL, LEAKS_INCREASED);
    CHECK(result.is_delta);
    CHECK_EQ(record(LEAK_DEFINITE, 1)->old_bytes, 16);
    CHECK(!record(LEAK_DEFINITE, 1)->passed_over);
    CHECK(record(LEAK_DEFINITE, 2)->passed_over);
    CHECK(!record(LEAK_DEFINITE, 3)->passed_over);
    drop_last();
    leaks_check(LEAKS_FULL, LEAKS_NEW);
    CHECK(record(LEAK_DEFINITE, 1)->passed_over);
    CHECK(record(LEAK_DEFINITE, 3)->passed_over);
    CHECK_EQ(record(LEAK_DEFINITE, 3)->blocks, 0);
    drop_last();
    leaks_check(LEAKS_FULL, LEAKS_CHANGED);
    CHECK(!record(LEAK_DEFINITE, 1)->passed_over);
    CHECK(record(LEAK_DEFINITE, 3) == NULL);
}

// ---- random graphs, against a plain implementation of the rules ---------------------------------

enum { NODES = 40, EDGES = 90 };

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

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static uint64_t random_target(const struct plain *plain, uint64_t *state) {
    int to = (int)(draw(state) % (unsigned)plain->count);
    uint64_t inside = plain->size[to] ? draw(state) % plain->size[to] : 0;
    return plain->start[to] + (draw(state) % 4 ? 0 : inside);
}

TEST(random_graphs_are_as_the_rules_say) {
    uint64_t state = 88172645463325252ul;
    long cycles = 0, kinds[4] = {0};
    begin();
    heuristics = "none";
    leaks_start();
    for (int round = 0; round < 4000; round++) {
        static struct plain plain;
        plain = (struct plain){.count = 2 + (int)(draw(&state) % (NODES - 2))};
        empty_heap();
        for (int i = 0; i < plain.count; i++) {
            plain.size[i] = draw(&state) % 7 * 8;
            plain.start[i] = block(plain.size[i], 1 + (uint32_t)i);
            memset((void *)plain.start[i], 0, plain.size[i]);
        }
        int edges = (int)(draw(&state) % EDGES);
        for (int i = 0; i < edges; i++) {
            int from = (int)(draw(&state) % (unsigned)plain.count);
            if (plain.size[from])
                point(plain.start[from] + draw(&state) % (plain.size[from] / 8) * 8,
                      random_target(&plain, &state));
        }
        for (int i = 0; i < 4; i++) {
            uint64_t root = draw(&state) % 3 ? 0 : random_target(&plain, &state);
            point(DATA + 8 * (uint64_t)i, root);
        }
        for (int i = 0; i < 4; i++)
            plain_push(&plain, *(uint64_t *)(DATA + 8 * (uint64_t)i), true);
        for (int i = 0; i < plain.count; i++)
            if (plain.kind[i] == LEAK_DEFINITE)
                plain_clique(&plain, i, i);
        search();
        for (int i = 0; i < plain.count; i++) {
            const struct loss_record *got = record((enum leak_kind)plain.kind[i], 1 + (uint32_t)i);
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

// Enough blocks that further threads help; every block has two that it holds.
TEST(threads_share_the_work) {
    begin();
    enum { MANY = 300000 };
    for (int i = 0; i < MANY; i++)
        block(32, 1 + (uint32_t)i % 3);
    for (int i = 0; i < MANY / 2; i++) {
        point(starts[i], 2 * i + 1 < MANY ? starts[2 * i + 1] : 0);
        point(starts[i] + 8, 2 * i + 2 < MANY ? starts[2 * i + 2] : 0);
    }
    // One subtree is held by an interior pointer only, one not at all.
    point(starts[1], starts[3] + 4);
    point(starts[2], 0);
    point(DATA, starts[0]);
    search();
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
