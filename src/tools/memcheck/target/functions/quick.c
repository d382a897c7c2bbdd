#include "tools/memcheck/target/functions/quick.h"

#include "base/x86.h"
#include "tools/memcheck/target/functions/access.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/functions/strings.h"
#include "tools/shared/allocators.h"
#include "tools/shared/words.h"

// More bytes are worth a hook, whose loops are made for many. A piece is what one step deals with;
// the last one overlaps the one before if the size is no multiple.
enum { MOST = 256 };

static const struct tool_quick_result not_done;

static inline struct tool_quick_result done(uint64_t result) {
    return (struct tool_quick_result){1, result};
}

static inline bool are_defined(const void *thread_state, unsigned count) {
    const uint8_t *undefined = ((const struct memcheck_thread *)thread_state)->registers.undefined;
    uint8_t any = 0;
    for (unsigned i = 0; i < count; i++)
        any |= undefined[argument_register(i)];
    return !any;
}

// ---- pieces ------------------------------------------------------------------------------------

ALWAYS uint64_t piece_load(uint64_t address, unsigned piece) {
    switch (piece) {
    case 8:
        return *(const volatile uint64_t *)address;
    case 4:
        return *(const volatile uint32_t *)address;
    case 2:
        return *(const volatile uint16_t *)address;
    default:
        return *(const volatile uint8_t *)address;
    }
}

ALWAYS void piece_store(uint64_t address, unsigned piece, uint64_t value) {
    switch (piece) {
    case 8:
        *(volatile uint64_t *)address = value;
        break;
    case 4:
        *(volatile uint32_t *)address = value;
        break;
    case 2:
        *(volatile uint16_t *)address = value;
        break;
    default:
        *(volatile uint8_t *)address = value;
    }
}

ALWAYS uint64_t shadow_load(uint64_t address, unsigned piece) {
    return piece_load(address + SHADOW_DISTANCE, piece);
}

// All shadow of a range, in one word: 0 if every byte is.
ALWAYS uint64_t shadow_any(uint64_t start, size_t size, unsigned piece) {
    uint64_t any = shadow_load(start + size - piece, piece);
    for (size_t i = 0; i + piece < size; i += piece)
        any |= shadow_load(start + i, piece);
    return any;
}

ALWAYS void shadow_clear(uint64_t start, size_t size, unsigned piece) {
    for (size_t i = 0; i + piece < size; i += piece)
        piece_store(start + i + SHADOW_DISTANCE, piece, 0);
    piece_store(start + size - piece + SHADOW_DISTANCE, piece, 0);
}

// Whether memory whose shadow is not 0 is wholly undefined or defined, byte by byte, and no part of
// the thread's stack that is not in use.
static bool __attribute__((noinline)) may_be_written(uint64_t start, size_t size) {
    uint64_t stack_start, stack_end;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = *shadow_of(start + i);
        if (byte != SHADOW_DEFINED && byte != SHADOW_UNDEFINED)
            return false;
    }
    return start >= tool_register(RSP) - RED_ZONE || !tool_own_stack(&stack_start, &stack_end) ||
           start < stack_start;
}

// ---- functions ---------------------------------------------------------------------------------

// The two do not overlap.
ALWAYS bool copy_pieces(uint64_t to, uint64_t from, size_t size, unsigned piece) {
    uint64_t any = shadow_any(to, size, piece);
    if (UNLIKELY(shadow_any(from, size, piece)) || (UNLIKELY(any) && !may_be_written(to, size)))
        return false;
    for (size_t i = 0; i + piece < size; i += piece)
        piece_store(to + i, piece, piece_load(from + i, piece));
    piece_store(to + size - piece, piece, piece_load(from + size - piece, piece));
    if (UNLIKELY(any))
        shadow_clear(to, size, piece);
    return true;
}

ALWAYS bool copy(uint64_t to, uint64_t from, size_t size) {
    if (size >= 8)
        return copy_pieces(to, from, size, 8);
    if (size >= 4)
        return copy_pieces(to, from, size, 4);
    return size >= 2 ? copy_pieces(to, from, size, 2) : copy_pieces(to, from, size, 1);
}

static struct tool_quick_result quick_copy(uint64_t to, uint64_t from, uint64_t size,
                                           void *thread_state) {
    if (size > MOST || to - from < size || from - to < size || !are_defined(thread_state, 3))
        return not_done;
    return !size || copy(to, from, size) ? done(to) : not_done;
}

ALWAYS bool fill_pieces(uint64_t to, uint64_t word, size_t size, unsigned piece) {
    uint64_t any = shadow_any(to, size, piece);
    if (UNLIKELY(any) && !may_be_written(to, size))
        return false;
    for (size_t i = 0; i + piece < size; i += piece)
        piece_store(to + i, piece, word);
    piece_store(to + size - piece, piece, word);
    if (UNLIKELY(any))
        shadow_clear(to, size, piece);
    return true;
}

static struct tool_quick_result quick_fill(uint64_t to, uint64_t byte, uint64_t size,
                                           void *thread_state) {
    if (size - 1 >= MOST || !are_defined(thread_state, 3))
        return not_done;
    uint64_t word = (uint8_t)byte * WORD_ONES;
    bool is_done = size >= 8   ? fill_pieces(to, word, size, 8)
                   : size >= 4 ? fill_pieces(to, word, size, 4)
                   : size >= 2 ? fill_pieces(to, word, size, 2)
                               : fill_pieces(to, word, size, 1);
    return is_done ? done(to) : not_done;
}

ALWAYS bool is_defined(uint64_t start, size_t size) {
    if (size >= 8)
        return !shadow_any(start, size, 8);
    if (size >= 4)
        return !shadow_any(start, size, 4);
    return size >= 2 ? !shadow_any(start, size, 2) : !shadow_any(start, size, 1);
}

static struct tool_quick_result quick_usable_size(uint64_t block, uint64_t b, uint64_t c,
                                                  void *thread_state) {
    if (!are_defined(thread_state, 1))
        return not_done;
    return allocators_has_own ? not_done : done(block ? heap_size_of(block) : 0);
}

static struct tool_quick_result quick_compare(uint64_t a, uint64_t b, uint64_t size,
                                              void *thread_state) {
    if (size - 1 >= MOST || !are_defined(thread_state, 3) || !is_defined(a, size) ||
        !is_defined(b, size))
        return not_done;
    size_t at = bytes_common(a, b, size);
    return done(at < size ? (int64_t)(byte_load(a + at) - byte_load(b + at)) : 0);
}

// ---- strings -----------------------------------------------------------------------------------

// How many bytes before the first that is `wanted` or the end; MOST: too many, or not all defined.
ALWAYS size_t before(uint64_t start, uint8_t wanted) {
    size_t size = bytes_before(start, wanted, 0, MOST);
    return size < MOST && is_defined(start, size + 1) ? size : MOST;
}

static struct tool_quick_result quick_length(uint64_t string, uint64_t b, uint64_t c,
                                             void *thread_state) {
    if (!are_defined(thread_state, 1))
        return not_done;
    size_t size = before(string, 0);
    return size < MOST ? done(size) : not_done;
}

static struct tool_quick_result quick_find(uint64_t string, uint64_t wanted, uint64_t c,
                                           void *thread_state) {
    if (!are_defined(thread_state, 2))
        return not_done;
    size_t size = before(string, wanted);
    if (size == MOST)
        return not_done;
    return done(byte_load(string + size) == (uint8_t)wanted ? string + size : 0);
}

ALWAYS uint8_t lower(uint8_t byte) {
    return (uint8_t)(byte - 'A') < 26 ? byte + ('a' - 'A') : byte;
}

ALWAYS struct tool_quick_result compare_strings(uint64_t a, uint64_t b, const void *thread_state,
                                                bool folds) {
    if (!are_defined(thread_state, 2))
        return not_done;
    for (size_t i = 0; i < MOST; i++) {
        if (UNLIKELY(*shadow_of(a + i) | *shadow_of(b + i)))
            return not_done;
        uint8_t x = byte_load(a + i), y = byte_load(b + i);
        if (folds) {
            x = lower(x);
            y = lower(y);
        }
        if (x != y || !x)
            return done((int64_t)x - y);
    }
    return not_done;
}

static struct tool_quick_result quick_compare_strings(uint64_t a, uint64_t b, uint64_t c,
                                                      void *thread_state) {
    return compare_strings(a, b, thread_state, false);
}

static struct tool_quick_result quick_compare_folded(uint64_t a, uint64_t b, uint64_t c,
                                                     void *thread_state) {
    return compare_strings(a, b, thread_state, true);
}

tool_quick_hook *quick_hook(void (*hook)(void)) {
    static const struct {
        void (*hook)(void);
        tool_quick_hook *quick;
    } hooks[] = {
        {on_memcpy, quick_copy},
        {on_memmove, quick_copy},
        {on_memset, quick_fill},
        {on_memcmp, quick_compare},
        {on_strlen, quick_length},
        {on_strchr, quick_find},
        {on_strcmp, quick_compare_strings},
        {on_strcasecmp, quick_compare_folded},
        {on_malloc_usable_size, quick_usable_size},
    };
    for (unsigned i = 0; i < sizeof hooks / sizeof *hooks; i++)
        if (hooks[i].hook == hook)
            return hooks[i].quick;
    return NULL;
}
