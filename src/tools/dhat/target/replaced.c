// malloc and its kin, as the target calls them. General registers only.
//
// The allocator is replaced in the same places as memcheck's (docs/memcheck.md). reallocarray is
// not: it calls realloc, and stands in its stacks.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/shared/allocators.h"
#include "tools/dhat/target/dhat.h"
#include "tools/shared/target_errno.h"

enum { PAGE = 4096 };

// Roughly what Valgrind's replacements execute; time goes on by that.
enum { COST_ALLOCATION = 24, COST_FREE = 14 };

static uint64_t allocate(size_t size, size_t alignment, bool zeroed) {
    replaced_cost(COST_ALLOCATION);
    return (int64_t)size < 0 ? 0 : slots_allocate(size, alignment, zeroed);
}

static void set_errno(void *unused) {
    target_errno_set(ENOMEM);
}

static void return_block(uint64_t block) {
    if (UNLIKELY(!block))
        tool_with_vectors(set_errno, NULL);
    replaced_return(block);
}

// A C++ allocation that must not fail. To throw, code of the target would have to run; it is ended
// as by an exception that nobody catches.
static void end_program(void *unused) {
    tool_print("new/new[] failed and should throw an exception; it cannot be thrown from here,",
               false);
    tool_print("so the program is aborted instead.", true);
    kill(getpid(), SIGABRT);
}

static void return_or_end(uint64_t block) {
    if (UNLIKELY(!block))
        tool_with_vectors(end_program, NULL);
    replaced_return(block);
}

// Whether a block is one of an allocator of the program, which then serves the call itself.
static bool is_left_to_itself(uint64_t block) {
    if (!UNLIKELY(allocators_has_own) || !block || note_of(block))
        return false;
    tool_run_itself();
    return true;
}

// ---- the C library's ---------------------------------------------------------------------------

static void on_malloc(void) {
    return_block(allocate(argument(0), ALLOCATORS_ALIGNMENT, false));
}

static void on_calloc(void) {
    size_t bytes;
    if (__builtin_mul_overflow(argument(0), argument(1), &bytes))
        return_block(0);
    else
        return_block(allocate(bytes, ALLOCATORS_ALIGNMENT, true));
}

static void on_free(void) {
    uint64_t block = argument(0);
    if (is_left_to_itself(block))
        return;
    replaced_cost(COST_FREE);
    if (block)
        slots_free(block);
    replaced_return(0);
}

static bool zero_frees = true;

static void on_realloc(void) {
    uint64_t block = argument(0);
    size_t size = argument(1);
    if (is_left_to_itself(block))
        return;
    if (!block) {
        return_block(allocate(size, ALLOCATORS_ALIGNMENT, false));
    } else if (!size && zero_frees) {
        on_free();
    } else {
        replaced_cost(COST_ALLOCATION);
        return_block(slots_resize(block, size, 1, false));
    }
}

// ---- aligned -----------------------------------------------------------------------------------

static void on_memalign(void) { // aligned_alloc, too
    return_block(allocate(argument(1), allocators_alignment(argument(0)), false));
}

struct storing {
    uint64_t address, word;
};

static void store(void *argument) {
    const struct storing *it = argument;
    *(volatile uint64_t *)it->address = it->word;
}

static void on_posix_memalign(void) {
    struct storing it = {argument(0), 0};
    size_t alignment = argument(1);
    uint64_t fault;
    if (!allocators_alignment_is_valid(alignment)) {
        replaced_return(EINVAL);
        return;
    }
    it.word = allocate(argument(2), allocators_alignment(alignment), false);
    if (!it.word) {
        replaced_return(ENOMEM);
    } else if (tool_try(store, &it, &fault)) {
        touch_write(it.address, sizeof it.word);
        replaced_return(0);
    } else {
        tool_raise();
    }
}

static void on_valloc(void) {
    return_block(allocate(argument(0), PAGE, false));
}

static void on_pvalloc(void) {
    return_block(allocate((argument(0) + PAGE - 1) & ~(size_t)(PAGE - 1), PAGE, false));
}

// ---- about the allocator -----------------------------------------------------------------------

static void on_malloc_usable_size(void) {
    if (is_left_to_itself(argument(0)))
        return;
    replaced_return(slots_size_of(argument(0)));
}

static void return_one(void) { // mallopt: as if it had taken note
    replaced_return(1);
}

static void return_zero(void) { // malloc_trim: nothing was given back
    replaced_return(0);
}

static void inform(void *is_wide) {
    uint8_t information[ALLOCATORS_INFORMATION];
    events_lock();
    events_tick();
    events_unlock();
    size_t size = allocators_inform(information, dhat_header->bytes, is_wide);
    tool_write(argument(0), information, size);
    replaced_return(argument(0));
}

static void on_mallinfo(void) {
    tool_with_vectors(inform, NULL);
}

static void on_mallinfo2(void) {
    static int wide;
    tool_with_vectors(inform, &wide);
}

// ---- C++ ---------------------------------------------------------------------------------------

static void on_new(void) {
    return_or_end(allocate(argument(0), ALLOCATORS_ALIGNMENT, false));
}

static void on_new_nothrow(void) {
    replaced_return(allocate(argument(0), ALLOCATORS_ALIGNMENT, false));
}

static void on_new_aligned(void) {
    return_or_end(allocate(argument(0), allocators_alignment(argument(1)), false));
}

static void on_new_aligned_nothrow(void) {
    replaced_return(allocate(argument(0), allocators_alignment(argument(1)), false));
}

// ---- what only some allocators have ------------------------------------------------------------

static uint64_t serve_other(const struct allocator_call *call) {
    size_t alignment = allocators_alignment(call->alignment), size = call->size;
    bool is_zeroed = call->act == ALLOCATOR_ZEROED || call->act == ALLOCATOR_REZERO;
    if (call->is_refused)
        return 0;
    if (!call->block)
        return allocate(size, alignment, is_zeroed);
    replaced_cost(COST_ALLOCATION);
    return slots_resize(call->block, size, alignment, is_zeroed);
}

static void on_other(const struct allocator_call *call) {
    uint64_t block = call->block;
    if (is_left_to_itself(block))
        return;
    switch (call->act) {
    case ALLOCATOR_SIZE:
    case ALLOCATOR_GROW:
        replaced_return(slots_size_of(block));
        break;
    case ALLOCATOR_EXPAND:
        replaced_return(block && call->size <= slots_size_of(block) ? block : 0);
        break;
    case ALLOCATOR_RELEASE:
        replaced_cost(COST_FREE);
        if (block)
            slots_free(block);
        replaced_return(0);
        break;
    default:
        return_block(serve_other(call));
    }
}

// ---- where -------------------------------------------------------------------------------------

static const struct allocators hooks = {
    .malloc = on_malloc,
    .calloc = on_calloc,
    .realloc = on_realloc,
    .free = on_free,
    .memalign = on_memalign,
    .posix_memalign = on_posix_memalign,
    .valloc = on_valloc,
    .pvalloc = on_pvalloc,
    .malloc_usable_size = on_malloc_usable_size,
    .mallopt = return_one,
    .malloc_trim = return_zero,
    .mallinfo = on_mallinfo,
    .mallinfo2 = on_mallinfo2,
    .new = on_new,
    .new_nothrow = on_new_nothrow,
    .new_aligned = on_new_aligned,
    .new_aligned_nothrow = on_new_aligned_nothrow,
    .new_array = on_new,
    .new_array_nothrow = on_new_nothrow,
    .new_array_aligned = on_new_aligned,
    .new_array_aligned_nothrow = on_new_aligned_nothrow,
    .delete = on_free,
    .delete_array = on_free,
    .other = on_other,
};

size_t replaced_start(struct tool_symbol *symbols) {
    const char *zero = tool_option("realloc-zero-bytes-frees");
    zero_frees = !zero || strcmp(zero, "no") != 0;
    symbols[0] = target_errno_symbol();
    return allocators_add(symbols, 1, &hooks);
}
