// malloc and its kin, as the target calls them. General registers only.
//
// The allocator is replaced in the same places as memcheck's (docs/memcheck.md). reallocarray is
// not: it calls realloc, and stands in its stacks.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/allocators.h"
#include "tools/dhat/dhat.h"
#include "tools/memcheck/arguments.h"

enum { PAGE = 4096, ALIGNMENT = 16 };

// Roughly what Valgrind's replacements execute; time goes on by that.
enum { COST_ALLOCATION = 24, COST_FREE = 14 };

static uint64_t allocate(size_t size, size_t alignment, bool zeroed) {
    replaced_cost(COST_ALLOCATION);
    return (int64_t)size < 0 ? 0 : slots_allocate(size, alignment, zeroed);
}

static void return_block(uint64_t block) {
    if (UNLIKELY(!block))
        target_set_errno(ENOMEM);
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

// ---- the C library's ---------------------------------------------------------------------------

static void on_malloc(void) {
    return_block(allocate(replaced_argument(0), ALIGNMENT, false));
}

static void on_calloc(void) {
    size_t bytes;
    if (__builtin_mul_overflow(replaced_argument(0), replaced_argument(1), &bytes))
        return_block(0);
    else
        return_block(allocate(bytes, ALIGNMENT, true));
}

static void on_free(void) {
    uint64_t block = replaced_argument(0);
    replaced_cost(COST_FREE);
    if (block)
        slots_free(block);
    replaced_return(0);
}

static bool zero_frees = true;

static void on_realloc(void) {
    uint64_t block = replaced_argument(0);
    size_t size = replaced_argument(1);
    if (!block) {
        return_block(allocate(size, ALIGNMENT, false));
    } else if (!size && zero_frees) {
        on_free();
    } else {
        replaced_cost(COST_ALLOCATION);
        return_block(slots_resize(block, size));
    }
}

// ---- aligned -----------------------------------------------------------------------------------

static size_t power_of_two(size_t alignment) {
    if (alignment <= ALIGNMENT)
        return ALIGNMENT;
    if (alignment > (size_t)1 << 62)
        return (size_t)1 << 62;
    return (size_t)1 << (64 - __builtin_clzl(alignment - 1));
}

static void on_memalign(void) { // aligned_alloc, too
    return_block(allocate(replaced_argument(1), power_of_two(replaced_argument(0)), false));
}

struct storing {
    uint64_t address, word;
};

static void store(void *argument) {
    const struct storing *it = argument;
    *(volatile uint64_t *)it->address = it->word;
}

static void on_posix_memalign(void) {
    struct storing it = {replaced_argument(0), 0};
    size_t alignment = replaced_argument(1);
    uint64_t fault;
    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1)) {
        replaced_return(EINVAL);
        return;
    }
    it.word = allocate(replaced_argument(2), power_of_two(alignment), false);
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
    return_block(allocate(replaced_argument(0), PAGE, false));
}

static void on_pvalloc(void) {
    return_block(allocate((replaced_argument(0) + PAGE - 1) & ~(size_t)(PAGE - 1), PAGE, false));
}

// ---- about the allocator -----------------------------------------------------------------------

static void on_malloc_usable_size(void) {
    replaced_return(slots_size_of(replaced_argument(0)));
}

static void return_one(void) { // mallopt: as if it had taken note
    replaced_return(1);
}

static void return_zero(void) { // malloc_trim: nothing was given back
    replaced_return(0);
}

// Both structures have ten members: arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks
// fordblks keepcost.
enum { MEMBERS = 10, ARENA = 0, IN_USE = 7 };

static void inform(void *is_wide) {
    events_lock();
    events_tick();
    events_unlock();
    uint64_t wide[MEMBERS] = {[ARENA] = dhat_header->bytes, [IN_USE] = dhat_header->bytes};
    uint32_t narrow[MEMBERS] = {[ARENA] = dhat_header->bytes, [IN_USE] = dhat_header->bytes};
    tool_write(replaced_argument(0), is_wide ? (void *)wide : narrow,
               is_wide ? sizeof wide : sizeof narrow);
    replaced_return(replaced_argument(0));
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
    return_or_end(allocate(replaced_argument(0), ALIGNMENT, false));
}

static void on_new_nothrow(void) {
    replaced_return(allocate(replaced_argument(0), ALIGNMENT, false));
}

static void on_new_aligned(void) {
    return_or_end(allocate(replaced_argument(0), power_of_two(replaced_argument(1)), false));
}

static void on_new_aligned_nothrow(void) {
    replaced_return(allocate(replaced_argument(0), power_of_two(replaced_argument(1)), false));
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
};

size_t replaced_start(struct tool_symbol *symbols) {
    const char *zero = tool_option("realloc-zero-bytes-frees");
    zero_frees = !zero || strcmp(zero, "no") != 0;
    target_has_shadow = false;
    symbols[0] = (struct tool_symbol){allocators_modules(), "__errno_location", TOOL_LOCATE, NULL,
                                      &target_errno_function};
    return allocators_add(symbols, 1, &hooks);
}
