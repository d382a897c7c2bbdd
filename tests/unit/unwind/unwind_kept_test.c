// Walks that go along the frames of the walk before must find what walks without that memory find:
// over random calls of functions whose frames look alike, have the same sizes, or sizes of their
// own at every call.
#include <alloca.h>
#include <link.h>
#include <string.h>

#include "any.h"
#include "unit.h"
#include "unwind/unwind.h"

#define DEPTH 40

static struct unwind_space space;
static struct unwind_thread lasting, fresh;
static uint64_t stack_high;
static long checks, different, shared;
static long quick, quick_same;
static uint64_t last[256]; // pcs of the last walk of `lasting`
static size_t last_count;

static int add_module(struct dl_phdr_info *info, size_t size, void *context) {
    struct unwind_image image;
    if (unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr))
        unwind_space_add(&space, &image);
    return 0;
}

static void keep_last(const uint64_t *pcs, size_t count) {
    memcpy(last, pcs, count * sizeof *pcs);
    last_count = count;
}

// From the caller's frame pointer alone: `expected` are the pcs of a walk without memory.
static void compare_callers(const uint64_t *frame, const struct unwind_memory *memory,
                            const uint64_t *expected, size_t expected_count,
                            enum unwind_end expected_end, size_t limit) {
    uint64_t pcs[256];
    enum unwind_end end;
    bool is_same = false;
    size_t count =
        unwind_callers_quickly(&space, &lasting, frame, memory, pcs, limit, &end, &is_same);
    if (!count) {
        last_count = 0;
        return;
    }
    quick++;
    quick_same += is_same;
    if (is_same)
        memcpy(pcs, last, last_count * sizeof *pcs);
    if (count != expected_count || end != expected_end ||
        memcmp(pcs, expected, count * sizeof *pcs) != 0 || (is_same && count != last_count))
        different++;
    keep_last(pcs, count);
}

// Walks by heart, of a fixed length: what was noted of one must hold for the other.
enum { RECALLED = 10, NOTED = 100000 };
static struct unwind_recall recall;
static uint64_t noted[NOTED][RECALLED];
static uint32_t noted_count = 1;
static long recalled;

static void compare_recalled(const struct unwind_registers *registers,
                             const struct unwind_memory *memory, const uint64_t *expected,
                             size_t expected_count) {
    uint64_t pcs[RECALLED];
    const uint64_t *value = registers->value;
    uint32_t number = unwind_recollect(&recall, &space, value[UNWIND_PC], value[UNWIND_RSP],
                                       value[UNWIND_RBP], memory->high);
    size_t length = expected_count < RECALLED ? expected_count : RECALLED;
    if (number) {
        recalled++;
        for (size_t i = 0; i < RECALLED; i++)
            if (noted[number][i] != (i < length ? expected[i] : 0))
                different++;
        return;
    }
    size_t count = unwind_stack_quickly(&space, &lasting, registers, memory, pcs, RECALLED);
    last_count = 0;
    if (!count || noted_count == NOTED)
        return;
    memcpy(noted[noted_count], pcs, count * sizeof *pcs);
    unwind_remember(&recall, &lasting, registers, pcs, count, noted_count++);
}

static __attribute__((noinline)) void compare(void) {
    uint64_t with[256], without[256];
    enum unwind_end end_with, end_without;
    struct unwind_registers registers;
    unwind_registers_here(&registers);
    struct unwind_memory memory = {.low = registers.value[UNWIND_RSP], .high = stack_high};
    size_t before = lasting.kept_count;
    fresh.kept_count = 0;
    size_t limit = any(8) ? 256 : 2 + any(20);
    size_t plain = unwind_stack(&space, &fresh, &registers, &memory, without, limit, &end_without);
    checks++;
    shared += before > 0;
    for (uint64_t times = any(3); times > 0 && plain > 1; times--)
        compare_callers(__builtin_frame_address(0), &memory, without + 1, plain - 1, end_without,
                        limit - 1);
    for (uint64_t times = limit == 256 ? any(3) : 0; times > 0; times--)
        compare_recalled(&registers, &memory, without, plain);
    if (any(2))
        return;
    size_t count = unwind_stack(&space, &lasting, &registers, &memory, with, limit, &end_with);
    if (count != plain || end_with != end_without ||
        memcmp(with, without, count * sizeof *with) != 0)
        different++;
    keep_last(with, count);
}

static long wander(int depth);

// The same size, two places to call from.
static __attribute__((noinline)) long twin_a(int depth) {
    volatile long pad[3] = {depth, 1, 2};
    long result = any(2) ? wander(depth + 1) + 1 : wander(depth + 1) + 2;
    return result + pad[1];
}

static __attribute__((noinline)) long twin_b(int depth) {
    volatile long pad[3] = {depth, 3, 4};
    long result = any(2) ? wander(depth + 1) + 3 : wander(depth + 1) + 4;
    return result + pad[1];
}

// A frame based on rbp, of a size that changes from call to call; old return addresses stay in it.
static __attribute__((noinline)) long stretchy(int depth) {
    volatile char *room = alloca(16 * (1 + any(6)));
    room[0] = (char)depth;
    return wander(depth + 1) + room[0];
}

// The frame pointer changes without a new frame.
static __attribute__((noinline, optimize("no-omit-frame-pointer"))) long framed(int depth) {
    volatile long pad = depth;
    long result = wander(depth + 1);
    compare();
    return result + pad;
}

static __attribute__((noinline)) long wander(int depth) {
    compare();
    if (depth >= DEPTH || any(12) == 0)
        return depth;
    long result = 0;
    for (uint64_t times = 1 + (any(5) == 0); times > 0; times--) {
        switch (any(4)) {
        case 0:
            result += twin_a(depth);
            break;
        case 1:
            result += twin_b(depth);
            break;
        case 2:
            result += stretchy(depth);
            break;
        default:
            result += framed(depth);
        }
    }
    compare();
    return result;
}

TEST(kept_frames_are_those_of_a_fresh_walk) {
    CHECK_EQ(unwind_space_open(&space), UNWIND_OK);
    dl_iterate_phdr(add_module, NULL);
    stack_high = (uint64_t)__builtin_frame_address(0) + 65536;
    extern char **environ;
    if (stack_high > (uint64_t)environ)
        stack_high = (uint64_t)environ & ~7ull;
    while (checks < 100000)
        wander(0);
    NOTE("%ld walks, %ld with frames of the walk before, %ld from frame pointers, %ld the same "
         "again",
         checks, shared, quick, quick_same);
    CHECK_EQ(different, 0);
    CHECK(shared > checks / 2);
    CHECK(quick > checks / 4);
    CHECK(quick_same > quick / 8 && quick_same < quick);
    NOTE("%ld by heart of %u noted", recalled, noted_count);
    CHECK(recalled > checks / 8);
    CHECK(lasting.counts.ends[UNWIND_END_BOTTOM] > (uint64_t)checks / 4);
    unwind_space_close(&space);
}

UNIT_MAIN()
