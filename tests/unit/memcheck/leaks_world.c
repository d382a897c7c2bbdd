#include "leaks_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/heap/pools.h"
#include "tools/shared/stacks.h"

struct world world;

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
static size_t small_count, large_count;
static uint64_t stacks[8][5] = {{0},
                                {1, 10, 100, 1000},
                                {2, 20, 200, 2000},
                                {3, 30, 300, 3000},
                                {1, 10, 101, 1001},
                                {1, 11, 111, 1111}};

const char *tool_option(const char *name) {
    if (strcmp(name, "leak-check-heuristics") == 0)
        return world.heuristics;
    if (strcmp(name, "leak-resolution") == 0)
        return world.resolution;
    return NULL;
}

void tool_say(const char *format, ...) {}

bool tool_has_shadow(uint64_t start, size_t size) {
    return true;
}

void tool_stop_threads(void) {}

void tool_resume_threads(void) {}

void tool_each_thread(void (*function)(const struct tool_thread *, void *), void *argument) {
    struct tool_thread thread = {.id = THREAD,
                                 .registers = world.registers,
                                 .stack_start = STACK,
                                 .stack_end = STACK + STACK_SIZE};
    function(&thread, argument);
}

bool tool_mapping_at(uint64_t address, struct tool_mapping *mapping) {
    int all = PROT_READ | PROT_WRITE;
    struct tool_mapping mappings[] = {
        {.start = HEAP, .end = world.hole ? world.hole : HEAP + SIZE, .prot = all},
        {.start = world.hole, .end = world.hole + 4096, .prot = PROT_NONE},
        {.start = world.hole ? world.hole + 4096 : 0,
         .end = world.hole ? HEAP + SIZE : 0,
         .prot = all},
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
    if (from - world.no_file < 4096)
        return -EFAULT;
    memcpy(to, (const void *)from, size);
    return 0;
}

bool tool_frame_of(uint64_t address, struct tool_frame *frame) {
    *frame = (struct tool_frame){.thread = THREAD, .pc = 0x77};
    return address - STACK < STACK_SIZE;
}

struct heap_totals heap_totals(void) {
    return (struct heap_totals){.live_blocks = world.block_count};
}

void cells_in_use(uint64_t *first, uint64_t *last) {
    *first = HEAP >> SEGMENT_BITS;
    *last = (HEAP + SIZE - 1) >> SEGMENT_BITS;
}

bool declared_next(uint64_t from, struct heap_block *block) {
    const struct heap_block *next = NULL;
    for (size_t i = 0; i < world.declared_count; i++)
        if (world.declared[i].start >= from && (!next || world.declared[i].start < next->start))
            next = &world.declared[i];
    if (next)
        *block = *next;
    return next;
}

bool heap_owns(uint64_t address, uint64_t *end) {
    *end = address < HEAP ? HEAP : address < HEAP + SIZE ? HEAP + SIZE : UINT64_MAX;
    return address - HEAP < SIZE;
}

size_t pools_chunk_count(void) {
    return world.chunk_count;
}

void pools_add_chunks(struct leak_blocks *to) {
    for (size_t i = 0; i < world.chunk_count; i++)
        blocks_add(to, world.chunks[i].start, world.chunks[i].size, world.chunks[i].made_at);
}

size_t stack_pcs(uint32_t stack, const uint64_t **pcs) {
    *pcs = stacks[stack];
    return 4;
}

void findings_stop_at_loss(void) {}

void findings_send_losses(const struct leak_search *search) {
    world.result = *search;
    memcpy(world.records, search->records, search->record_count * sizeof *world.records);
    world.result.records = world.records;
}

static void map(uint64_t start) {
    uint64_t shadow = (start + SHADOW_DISTANCE) & ~4095ul;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (mmap((void *)start, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ||
        mmap((void *)shadow, SIZE + 8192, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        abort();
}

void world_empty_heap(void) {
    for (size_t i = 0; i < SEGMENTS; i++)
        slabs[i].count = 0;
    small_count = large_count = world.block_count = world.declared_count = world.chunk_count = 0;
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
    world_empty_heap();
}

void world_check(enum leak_mode mode, enum leak_delta delta) {
    leaks_check(&(struct leak_command){.mode = mode, .delta = delta, .heuristics = -1});
}

void world_begin(void) {
    map(HEAP);
    map(DATA);
    map(CODE);
    map(STACK);
    make_slabs();
    memset(world.registers, 0, sizeof world.registers);
    world.registers[4] = STACK + STACK_SIZE / 2;
    world.hole = world.no_file = 0;
    world.heuristics = world.resolution = NULL;
    leaks_start();
    // Forgets what the test before has left.
    world_check(LEAKS_FULL, LEAKS_ALL);
    world_check(LEAKS_FULL, LEAKS_ALL);
}

static struct block_note *note_of(uint64_t start) {
    struct slab *slab = &slabs[(start - HEAP) >> SEGMENT_BITS];
    return &slab->notes[slot_of(slab, start)];
}

uint64_t world_block(size_t size, uint32_t stack) {
    bool is_small = size <= SMALL - 16;
    size_t *count = is_small ? &small_count : &large_count;
    size_t each = is_small ? SMALL_SLOTS : LARGE_SLOTS;
    struct slab *slab = &slabs[(is_small ? 0 : SEGMENTS / 2) + *count / each];
    uint64_t start = slot_block(slab, *count % each, 16);
    slab->count = *count % each + 1;
    ++*count;
    *note_of(start) =
        (struct block_note){.made_at = stack, .word = note_word(size, HEAP_MALLOC, 4)};
    world.starts[world.block_count++] = start;
    return start;
}

void world_drop_last(void) {
    note_of(world.starts[--world.block_count])->word = 0; // the slot stays
}

void world_point(uint64_t from, uint64_t to) {
    *(uint64_t *)from = to;
}

const struct loss *world_record(enum leak_kind kind, uint32_t stack) {
    for (size_t i = 0; i < world.result.record_count; i++)
        if (world.records[i].kind == kind && world.records[i].stack == stack)
            return &world.records[i];
    return NULL;
}

uint64_t world_bytes(enum leak_kind kind) {
    return leaks_last().bytes[kind];
}

void world_search(void) {
    world_check(LEAKS_FULL, LEAKS_ALL);
}
