// malloc and its kin, as the target calls them.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/x86.h"
#include "tools/shared/allocators.h"
#include "tools/shared/arguments.h"
#include "tools/heap/target/heap.h"
#include "tools/shared/target_errno.h"

enum { PAGE = 4096 };

static void set_result(uint64_t value) {
    tool_registers()[RESULT] = value;
}

// What a function of the C library returns that failed if there is no block.
static void return_block(uint64_t block) {
    if (!block)
        target_errno_set(ENOMEM);
    set_result(block);
}

// ---- blocks ----

// Of a size with overhead, as massif counts it.
static int64_t weight(size_t size) {
    return (int64_t)(((size + ALLOCATORS_ALIGNMENT - 1) & ~(size_t)(ALLOCATORS_ALIGNMENT - 1)) +
                     heap_choices.admin);
}

static uint64_t allocate(size_t size, size_t alignment, bool zeroed) {
    uint64_t block = room_allocate(size, alignment, zeroed);
    if (block && heap_choices.blocks) {
        ticks_heap_changed(weight(size));
        tell_allocated(block, size, tell_stack(1));
    }
    return block;
}

static void release(uint64_t block) {
    size_t size;
    if (!block || !room_find(block, &size))
        return;
    if (heap_choices.blocks) {
        tell_freed(block);
        ticks_heap_changed(-weight(size));
    }
    room_free(block, &size);
}

static uint64_t resize(uint64_t block, size_t size, size_t alignment, bool zeroed) {
    size_t old;
    if (!block)
        return allocate(size, alignment, zeroed);
    if (!room_find(block, &old))
        return 0;
    if (size == 0) {
        release(block);
        return 0;
    }
    if (!heap_choices.blocks)
        return room_resize(block, size, alignment, zeroed);
    uint32_t stack = tell_stack(1);
    tell_resize_began(block);
    uint64_t moved = room_resize(block, size, alignment, zeroed);
    tell_resize_ended(moved, size, stack);
    if (moved)
        ticks_heap_changed(weight(size) - weight(old));
    return moved;
}

// Whether a block is one of an allocator of the program, which then serves the call itself.
static bool is_left_to_itself(uint64_t block) {
    size_t size;
    if (!allocators_has_own || !block || room_find(block, &size))
        return false;
    tool_run_itself();
    return true;
}

// ---- the C library's ----

static void on_malloc(void) {
    return_block(allocate(argument(0), 0, false));
}

static void on_calloc(void) {
    size_t bytes;
    bool is_refused = __builtin_mul_overflow(argument(0), argument(1), &bytes);
    return_block(is_refused ? 0 : allocate(bytes, 0, true));
}

static void on_free(void) {
    if (is_left_to_itself(argument(0)))
        return;
    release(argument(0));
    set_result(0);
}

// Nothing is left of a block that is to have no bytes: that is no failure.
static void return_resized(uint64_t block, size_t size) {
    if (is_left_to_itself(block))
        return;
    uint64_t resized = resize(block, size, 0, false);
    if (block && !size)
        set_result(resized);
    else
        return_block(resized);
}

static void on_realloc(void) {
    return_resized(argument(0), argument(1));
}

static void on_reallocarray(void) {
    size_t bytes;
    if (__builtin_mul_overflow(argument(1), argument(2), &bytes))
        return_block(0);
    else
        return_resized(argument(0), bytes);
}

static uint64_t allocate_aligned(size_t alignment, size_t size) {
    if (alignment > (size_t)1 << 62)
        return 0;
    return allocate(size, allocators_alignment(alignment), false);
}

static void on_memalign(void) { // aligned_alloc, too
    return_block(allocate_aligned(argument(0), argument(1)));
}

static void on_posix_memalign(void) {
    size_t alignment = argument(1);
    if (!allocators_alignment_is_valid(alignment)) {
        set_result(EINVAL);
        return;
    }
    uint64_t block = allocate_aligned(alignment, argument(2));
    if (block && tool_write(argument(0), &block, sizeof block) == 0) {
        set_result(0);
        return;
    }
    release(block);
    set_result(ENOMEM);
}

static void on_valloc(void) {
    return_block(allocate_aligned(PAGE, argument(0)));
}

static void on_pvalloc(void) {
    return_block(allocate_aligned(PAGE, (argument(0) + PAGE - 1) & ~(uint64_t)(PAGE - 1)));
}

static void on_malloc_usable_size(void) {
    size_t size = 0;
    if (is_left_to_itself(argument(0)))
        return;
    if (room_find(argument(0), &size))
        size = (size + ALLOCATORS_ALIGNMENT - 1) & ~(size_t)(ALLOCATORS_ALIGNMENT - 1);
    set_result(size);
}

static void on_mallopt(void) { // as if it had taken note
    set_result(1);
}

static void on_malloc_trim(void) { // nothing was given back
    set_result(0);
}

// ---- C++ ----

static uint64_t place_of_throw; // std::__throw_bad_alloc; 0: nowhere

// What cannot be had is as if the caller had called the function that throws: "returning" to that
// leaves it the caller's return address.
static void return_or_throw(uint64_t block) {
    uint64_t stack = tool_register(RSP) - 8;
    set_result(block);
    if (block)
        return;
    if (place_of_throw && tool_write(stack, &place_of_throw, sizeof place_of_throw) == 0) {
        tool_registers()[RSP] = stack;
        return;
    }
    tool_print("new/new[] failed, and there is nothing to throw an exception with: the program is",
               false);
    tool_print("aborted.", true);
    kill(getpid(), SIGABRT);
}

static void on_new(void) {
    return_or_throw(allocate(argument(0), 0, false));
}

static void on_new_aligned(void) {
    return_or_throw(allocate_aligned(argument(1), argument(0)));
}

static void on_new_aligned_nothrow(void) {
    set_result(allocate_aligned(argument(1), argument(0)));
}

// ---- what only some allocators have ----

static void on_other(const struct allocator_call *call) {
    size_t alignment = allocators_alignment(call->alignment), size = 0;
    bool is_zeroed = call->act == ALLOCATOR_ZEROED || call->act == ALLOCATOR_REZERO;
    if (is_left_to_itself(call->block))
        return;
    switch (call->act) {
    case ALLOCATOR_SIZE:
    case ALLOCATOR_GROW:
        room_find(call->block, &size);
        set_result(size);
        break;
    case ALLOCATOR_EXPAND:
        set_result(room_find(call->block, &size) && call->size <= size ? call->block : 0);
        break;
    case ALLOCATOR_RELEASE:
        release(call->block);
        set_result(0);
        break;
    default:
        return_block(call->is_refused ? 0 : resize(call->block, call->size, alignment, is_zeroed));
    }
}

// ---- where ----

static uint64_t place_of_malloc;

bool calls_found(void) {
    return place_of_malloc;
}

static const struct allocators hooks = {
    .malloc = on_malloc,
    .calloc = on_calloc,
    .realloc = on_realloc,
    .reallocarray = on_reallocarray,
    .free = on_free,
    .memalign = on_memalign,
    .posix_memalign = on_posix_memalign,
    .valloc = on_valloc,
    .pvalloc = on_pvalloc,
    .malloc_usable_size = on_malloc_usable_size,
    .mallopt = on_mallopt,
    .malloc_trim = on_malloc_trim,
    .new = on_new,
    .new_nothrow = on_malloc,
    .new_aligned = on_new_aligned,
    .new_aligned_nothrow = on_new_aligned_nothrow,
    .new_array = on_new,
    .new_array_nothrow = on_malloc,
    .new_array_aligned = on_new_aligned,
    .new_array_aligned_nothrow = on_new_aligned_nothrow,
    .delete = on_free,
    .delete_array = on_free,
    .other = on_other,
};

struct tool_symbol calls_symbols[ALLOCATORS_SYMBOLS + 4];

// With pages, allocators stay as they are.
void calls_start(void) {
    const char *modules = allocators_modules();
    if (heap_choices.pages)
        return;
    calls_symbols[0] = (struct tool_symbol){modules, "malloc", TOOL_LOCATE, NULL, &place_of_malloc};
    calls_symbols[1] = (struct tool_symbol){modules, "_ZSt17__throw_bad_allocv", TOOL_LOCATE, NULL,
                                            &place_of_throw};
    calls_symbols[2] = target_errno_symbol();
    allocators_add(calls_symbols, 3, &hooks);
}
