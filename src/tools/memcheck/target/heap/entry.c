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

// Whether a block is one of an allocator of the program, which then serves the call itself.
static bool is_left_to_itself(uint64_t address) {
    struct heap_block block;
    if (!UNLIKELY(allocators_has_own) || !address || heap_find(address, &block))
        return false;
    tool_run_itself();
    return true;
}

static const struct heap_claim any_free = {HEAP_MALLOC, "free", "", HEAP_ANY, HEAP_ANY};

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
    if (is_left_to_itself(block))
        return;
    if (block)
        heap_free(block, &any_free);
    set_result(0);
}

static void free_claimed(const struct heap_claim *claim) {
    if (is_left_to_itself(argument(0)))
        return;
    if (argument(0))
        heap_free(argument(0), claim);
    set_result(0);
}

static void on_free_sized(void) {
    arguments_check(2, 0);
    free_claimed(&(struct heap_claim){HEAP_MALLOC, "free_sized", "malloc/free_sized", argument(1),
                                      HEAP_ANY});
}

static void on_free_aligned_sized(void) {
    arguments_check(3, 0);
    free_claimed(&(struct heap_claim){HEAP_MALLOC, "free_aligned_sized",
                                      "aligned_alloc/free_aligned_sized", argument(2),
                                      argument(1)});
}

static uint64_t resize(uint64_t block, size_t size) {
    if (!block)
        return is_fishy("malloc", "size", size) ? 0 : heap_allocate(size, 0, HEAP_MALLOC, false);
    if (is_fishy("realloc", "size", size))
        return 0;
    return heap_resize(block, size);
}

static void resize_and_return(const char *function, uint64_t block, size_t size) {
    static const struct heap_claim to_zero = {HEAP_MALLOC, "realloc", "", HEAP_ANY, HEAP_ANY};
    if (is_left_to_itself(block))
        return;
    if (block && size == 0 && heap_options.resizes_to_zero)
        findings_add_resize_to_zero(block, function);
    if (block && size == 0 && heap_options.resize_to_zero_frees) {
        heap_free(block, &to_zero);
        set_result(0);
        return;
    }
    return_block(resize(block, size));
}

static void on_realloc(void) {
    arguments_check(2, 0);
    resize_and_return("realloc", argument(0), argument(1));
}

static void on_reallocarray(void) {
    arguments_check(3, 0);
    size_t size;
    if (__builtin_mul_overflow(argument(1), argument(2), &size))
        return_block(0);
    else
        resize_and_return("reallocarray", argument(0), size);
}

// ---- aligned -----------------------------------------------------------------------------------

static bool is_power_of_two(size_t alignment) {
    return alignment && !(alignment & (alignment - 1));
}

static uint64_t allocate_aligned(size_t alignment, size_t size) {
    if (is_fishy("memalign", "size", size))
        return 0;
    if (!size)
        findings_add_zero_size();
    return heap_allocate(size, allocators_alignment(alignment), HEAP_MALLOC, false);
}

static void on_memalign(void) {
    arguments_check(2, 0);
    if (!is_power_of_two(argument(0)))
        findings_add_alignment(argument(0), 0, " (should be power of 2)");
    return_block(allocate_aligned(argument(0), argument(1)));
}

static void on_aligned_alloc(void) {
    arguments_check(2, 0);
    size_t alignment = argument(0), size = argument(1);
    if (alignment && !is_power_of_two(alignment))
        findings_add_alignment(alignment, 0, " (should be a power of 2)");
    if (alignment && size % alignment)
        findings_add_alignment(alignment, size, " (size should be a multiple of alignment)");
    return_block(allocate_aligned(alignment, size));
}

static void on_posix_memalign(void) {
    arguments_check(3, 1);
    uint64_t place = argument(0), block;
    size_t alignment = argument(1), size = argument(2);
    if (!allocators_alignment_is_valid(alignment)) {
        findings_add_alignment(
            alignment, 0, " (should be non-zero, a power of 2 and a multiple of sizeof(void*))");
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
    if (is_left_to_itself(argument(0)))
        return;
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
    return heap_allocate(size, alignment ? allocators_alignment(alignment) : 0, maker, false);
}

static void check_alignment(size_t alignment) {
    if (!is_power_of_two(alignment))
        findings_add_alignment(alignment, 0, " (should be non-zero and a power of 2)");
}

static uint64_t allocate_new_aligned(const char *function, enum heap_maker maker) {
    arguments_check(2, 0);
    check_alignment(argument(1));
    return allocate_new(function, argument(0), allocators_alignment(argument(1)), maker);
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
    return_or_throw(allocate_new_aligned("__builtin_new_aligned", HEAP_NEW));
}

static void on_new_aligned_nothrow(void) {
    set_result(allocate_new_aligned("__builtin_new_aligned", HEAP_NEW));
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
    return_or_throw(allocate_new_aligned("__builtin_vec_new_aligned", HEAP_NEW_ARRAY));
}

static void on_new_array_aligned_nothrow(void) {
    set_result(allocate_new_aligned("__builtin_vec_new_aligned", HEAP_NEW_ARRAY));
}

// What a delete says of the block. The size and the alignment are in the arguments of these
// numbers; 0: they are not given.
static inline void take_delete(bool is_array, unsigned size, unsigned alignment) {
    struct heap_claim claim = {is_array ? HEAP_NEW_ARRAY : HEAP_NEW,
                               is_array ? "delete[]" : "delete",
                               is_array ? "new[]/delete[]" : "new/delete", HEAP_ANY, 0};
    arguments_check(1 + (size > 0) + (alignment > 0), 0);
    if (size)
        claim.size = argument(size);
    if (alignment) {
        claim.alignment = argument(alignment);
        check_alignment(claim.alignment);
    }
    free_claimed(&claim);
}

static void on_delete(void) {
    take_delete(false, 0, 0);
}

static void on_delete_sized(void) {
    take_delete(false, 1, 0);
}

static void on_delete_aligned(void) {
    take_delete(false, 0, 1);
}

static void on_delete_sized_aligned(void) {
    take_delete(false, 1, 2);
}

static void on_delete_array(void) {
    take_delete(true, 0, 0);
}

static void on_delete_array_sized(void) {
    take_delete(true, 1, 0);
}

static void on_delete_array_aligned(void) {
    take_delete(true, 0, 1);
}

static void on_delete_array_sized_aligned(void) {
    take_delete(true, 1, 2);
}

// ---- what only some allocators have ------------------------------------------------------------

static uint64_t serve_other(const struct allocator_call *call) {
    size_t alignment = call->alignment ? allocators_alignment(call->alignment) : 0;
    size_t size = call->size;
    bool is_zeroed = call->act == ALLOCATOR_ZEROED || call->act == ALLOCATOR_REZERO;
    if (call->is_refused || is_fishy("malloc", "size", size))
        return 0;
    if (!call->block)
        return heap_allocate(size, alignment, HEAP_MALLOC, is_zeroed);
    if (call->act == ALLOCATOR_EXPAND)
        return size <= heap_size_of(call->block) ? call->block : 0;
    return heap_resize_aligned(call->block, size, alignment, is_zeroed);
}

static void on_other(const struct allocator_call *call) {
    arguments_check(call->count, 0);
    if (is_left_to_itself(call->block))
        return;
    if (call->act == ALLOCATOR_SIZE || call->act == ALLOCATOR_GROW) {
        set_result(heap_size_of(call->block));
    } else if (call->act == ALLOCATOR_RELEASE) {
        if (call->block)
            heap_free(call->block, &any_free);
        set_result(0);
    } else if (call->act == ALLOCATOR_EXPAND) {
        set_result(call->block ? serve_other(call) : 0);
    } else {
        return_block(serve_other(call));
    }
}

// ---- where -------------------------------------------------------------------------------------

// Some allocators have one function for free and delete, or for malloc and a kind of new: then
// nobody knows by which name it was called, and a block's maker means nothing.
#define ALLOCATORS                                                                                 \
    "*jemalloc*.so*|*tcmalloc*.so*|*mimalloc*.so*|" TOOL_ANY_PROGRAM "|" TOOL_ALLOCATOR

static const char allocators[] = ALLOCATORS;
static uint64_t place_of_malloc, place_of_free, place_of_new, place_of_new_nothrow, place_of_delete;
static uint64_t place_of_delete_sized, place_of_delete_aligned;

bool entry_knows_makers(void) {
    return !(place_of_free && place_of_free == place_of_delete) &&
           !(place_of_malloc &&
             (place_of_malloc == place_of_new_nothrow || place_of_malloc == place_of_new));
}

bool entry_knows_claims(void) {
    return !place_of_delete ||
           (entry_knows_makers() && place_of_delete != place_of_delete_sized &&
            place_of_delete != place_of_delete_aligned &&
            (!place_of_delete_sized || place_of_delete_sized != place_of_delete_aligned));
}

#define LOCATE(name, place)                                                                        \
    { allocators, name, TOOL_LOCATE, NULL, &place }

static const struct tool_symbol located[] = {
    LOCATE("malloc", place_of_malloc),
    LOCATE("free", place_of_free),
    LOCATE("_Znwm", place_of_new),
    LOCATE("_ZnwmRKSt9nothrow_t", place_of_new_nothrow),
    LOCATE("_ZdlPv", place_of_delete),
    LOCATE("_ZdlPvm", place_of_delete_sized),
    LOCATE("_ZdlPvSt11align_val_t", place_of_delete_aligned),
};

static const struct allocators hooks = {
    .malloc = on_malloc,
    .calloc = on_calloc,
    .realloc = on_realloc,
    .reallocarray = on_reallocarray,
    .free = on_free,
    .free_sized = on_free_sized,
    .free_aligned_sized = on_free_aligned_sized,
    .memalign = on_memalign,
    .aligned_alloc = on_aligned_alloc,
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
    .delete_sized = on_delete_sized,
    .delete_aligned = on_delete_aligned,
    .delete_sized_aligned = on_delete_sized_aligned,
    .delete_array_sized = on_delete_array_sized,
    .delete_array_aligned = on_delete_array_aligned,
    .delete_array_sized_aligned = on_delete_array_sized_aligned,
    .other = on_other,
};

size_t entry_symbols(struct tool_symbol *symbols) {
    size_t count = 0;
    symbols[count++] = target_errno_symbol();
    for (size_t i = 0; i < sizeof located / sizeof *located; i++)
        symbols[count++] = located[i];
    return allocators_add(symbols, count, &hooks);
}
