// malloc and its kin, as the target calls them. General registers only, but for what is rare.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/shared/allocators.h"
#include "tools/memcheck/target/functions/arguments.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/shared/target_errno.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { PAGE = 4096 };

// ---- failing -----------------------------------------------------------------------------------

static _Thread_local bool is_again __attribute__((tls_model("local-exec")));

static bool is_fishy(const char *function, const char *argument, uint64_t value) {
    if (!UNLIKELY((int64_t)value < 0))
        return false;
    if (is_again) { // told already
        is_again = false;
        return true;
    }
    findings_add_fishy(function, argument, (int64_t)value);
    return true;
}

static void set_errno(void *unused) {
    uint64_t place = target_errno_set(ENOMEM);
    if (place)
        shadow_make_defined(place, sizeof(int));
}

static void return_block(uint64_t block) {
    if (UNLIKELY(!block))
        tool_with_vectors(set_errno, NULL);
    set_result(block);
}

// A C++ allocation that must not fail: operator new itself calls the handler, and throws. On its
// way it asks for the same once more.
static void return_or_throw(uint64_t block) {
    if (UNLIKELY(!block)) {
        is_again = (int64_t)argument(0) < 0;
        tool_run_itself();
    }
    set_result(block);
}

// ---- the C library's ---------------------------------------------------------------------------

static void on_malloc(void) {
    arguments_check(1, 0);
    size_t size = argument(0);
    return_block(is_fishy("malloc", "size", size) ? 0 : heap_allocate(size, 0, HEAP_MALLOC, false));
}

static void on_calloc(void) {
    arguments_check(2, 0);
    size_t count = argument(0), size = argument(1), bytes;
    bool is_refused = __builtin_mul_overflow(count, size, &bytes) ||
                      is_fishy("calloc", "nmemb", count) || is_fishy("calloc", "size", size);
    return_block(is_refused ? 0 : heap_allocate(bytes, 0, HEAP_MALLOC, true));
}

static void on_free(void) {
    arguments_check(1, 0);
    uint64_t block = argument(0);
    if (block)
        heap_free(block, HEAP_MALLOC, "free");
    set_result(0);
}

static uint64_t resize(uint64_t block, size_t size) {
    if (!block)
        return is_fishy("malloc", "size", size) ? 0 : heap_allocate(size, 0, HEAP_MALLOC, false);
    if (is_fishy("realloc", "size", size))
        return 0;
    return heap_resize(block, size);
}

static void resize_and_return(uint64_t block, size_t size) {
    if (block && size == 0 && heap_options.resize_to_zero_frees) {
        heap_free(block, HEAP_MALLOC, "realloc");
        set_result(0);
        return;
    }
    return_block(resize(block, size));
}

static void on_realloc(void) {
    arguments_check(2, 0);
    resize_and_return(argument(0), argument(1));
}

static void on_reallocarray(void) {
    arguments_check(3, 0);
    size_t size;
    if (__builtin_mul_overflow(argument(1), argument(2), &size))
        return_block(0);
    else
        resize_and_return(argument(0), size);
}

// ---- aligned -----------------------------------------------------------------------------------

static uint64_t allocate_aligned(size_t alignment, size_t size) {
    if (is_fishy("memalign", "size", size))
        return 0;
    return heap_allocate(size, allocators_alignment(alignment), HEAP_MALLOC, false);
}

static void on_memalign(void) { // aligned_alloc, too
    arguments_check(2, 0);
    return_block(allocate_aligned(argument(0), argument(1)));
}

static void on_posix_memalign(void) {
    arguments_check(3, 1);
    uint64_t place = argument(0), block;
    size_t alignment = argument(1), size = argument(2);
    if (!allocators_alignment_is_valid(alignment)) {
        set_result(EINVAL);
        return;
    }
    block = allocate_aligned(alignment, size);
    if (!block) {
        set_result(ENOMEM);
        return;
    }
    if (target_store(place, block))
        set_result(0);
}

static void on_valloc(void) {
    arguments_check(1, 0);
    return_block(allocate_aligned(PAGE, argument(0)));
}

static void on_pvalloc(void) {
    arguments_check(1, 0);
    size_t size = argument(0);
    if ((int64_t)size >= 0)
        size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    return_block(allocate_aligned(PAGE, size));
}

// ---- about the allocator -----------------------------------------------------------------------

void on_malloc_usable_size(void) {
    arguments_check(1, 0);
    set_result(argument(0) ? heap_size_of(argument(0)) : 0);
}

static void on_mallopt(void) { // as if it had taken note
    set_result(1);
}

static void on_malloc_trim(void) { // nothing was given back
    set_result(0);
}

static void inform(void *is_wide) {
    uint8_t information[ALLOCATORS_INFORMATION];
    size_t size = allocators_inform(information, heap_totals().live_bytes, is_wide);
    uint64_t place = argument(0);
    if (tool_write(place, information, size) == 0)
        shadow_make_defined(place, size);
    set_result(place);
}

static void on_mallinfo(void) {
    tool_with_vectors(inform, NULL);
}

static void on_mallinfo2(void) {
    static int wide;
    tool_with_vectors(inform, &wide);
}

// ---- C++ ---------------------------------------------------------------------------------------

static uint64_t allocate_new(const char *function, size_t size, size_t alignment,
                             enum heap_maker maker) {
    if (is_fishy(function, "size", size))
        return 0;
    return heap_allocate(size, allocators_alignment(alignment), maker, false);
}

static void on_new(void) {
    arguments_check(1, 0);
    return_or_throw(allocate_new("__builtin_new", argument(0), 0, HEAP_NEW));
}

static void on_new_nothrow(void) {
    arguments_check(1, 0);
    set_result(allocate_new("__builtin_new", argument(0), 0, HEAP_NEW));
}

static void on_new_aligned(void) {
    arguments_check(2, 0);
    return_or_throw(allocate_new("__builtin_new_aligned", argument(0), argument(1), HEAP_NEW));
}

static void on_new_aligned_nothrow(void) {
    arguments_check(2, 0);
    set_result(allocate_new("__builtin_new_aligned", argument(0), argument(1), HEAP_NEW));
}

static void on_new_array(void) {
    arguments_check(1, 0);
    return_or_throw(allocate_new("__builtin_vec_new", argument(0), 0, HEAP_NEW_ARRAY));
}

static void on_new_array_nothrow(void) {
    arguments_check(1, 0);
    set_result(allocate_new("__builtin_vec_new", argument(0), 0, HEAP_NEW_ARRAY));
}

static void on_new_array_aligned(void) {
    arguments_check(2, 0);
    return_or_throw(
        allocate_new("__builtin_vec_new_aligned", argument(0), argument(1), HEAP_NEW_ARRAY));
}

static void on_new_array_aligned_nothrow(void) {
    arguments_check(2, 0);
    set_result(allocate_new("__builtin_vec_new_aligned", argument(0), argument(1), HEAP_NEW_ARRAY));
}

static void on_delete(void) {
    arguments_check(1, 0);
    if (argument(0))
        heap_free(argument(0), HEAP_NEW, "delete");
    set_result(0);
}

static void on_delete_array(void) {
    arguments_check(1, 0);
    if (argument(0))
        heap_free(argument(0), HEAP_NEW_ARRAY, "delete[]");
    set_result(0);
}

// ---- where -------------------------------------------------------------------------------------

// Some allocators have one function for free and delete, or for malloc and a kind of new: then
// nobody knows by which name it was called, and a block's maker means nothing.
#define ALLOCATORS "*jemalloc*.so*|*tcmalloc*.so*|*mimalloc*.so*|" TOOL_PROGRAM

static const char allocators[] = ALLOCATORS;
static uint64_t place_of_malloc, place_of_free, place_of_new, place_of_new_nothrow, place_of_delete;

bool entry_knows_makers(void) {
    return !(place_of_free && place_of_free == place_of_delete) &&
           !(place_of_malloc &&
             (place_of_malloc == place_of_new_nothrow || place_of_malloc == place_of_new));
}

#define LOCATE(name, place)                                                                        \
    { allocators, name, TOOL_LOCATE, NULL, &place }

static const struct tool_symbol located[] = {
    LOCATE("malloc", place_of_malloc), LOCATE("free", place_of_free),
    LOCATE("_Znwm", place_of_new),     LOCATE("_ZnwmRKSt9nothrow_t", place_of_new_nothrow),
    LOCATE("_ZdlPv", place_of_delete),
};

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
    .mallinfo = on_mallinfo,
    .mallinfo2 = on_mallinfo2,
    .new = on_new,
    .new_nothrow = on_new_nothrow,
    .new_aligned = on_new_aligned,
    .new_aligned_nothrow = on_new_aligned_nothrow,
    .new_array = on_new_array,
    .new_array_nothrow = on_new_array_nothrow,
    .new_array_aligned = on_new_array_aligned,
    .new_array_aligned_nothrow = on_new_array_aligned_nothrow,
    .delete = on_delete,
    .delete_array = on_delete_array,
};

size_t entry_symbols(struct tool_symbol *symbols) {
    size_t count = 0;
    symbols[count++] = target_errno_symbol();
    for (size_t i = 0; i < sizeof located / sizeof *located; i++)
        symbols[count++] = located[i];
    return allocators_add(symbols, count, &hooks);
}
