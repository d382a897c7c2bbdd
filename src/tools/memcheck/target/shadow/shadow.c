#include "tools/memcheck/target/shadow/shadow.h"

#include <stdatomic.h>

#include "base/x86.h"
#include "tools/memcheck/target/shadow/frames.h"

enum {
    FEW = 512,         // up to here words are written one by one
    LARGE = 64 * 1024, // from here on whole pages are mapped rather than written
};

// ---- bytes whose undefined bits look like the code for no access -------------------------------
//
// They exist hardly ever, but a program that makes one must not be accused of a bad access.

enum { LOOKALIKES = 4096 };

static uint64_t lookalikes[LOOKALIKES]; // addresses, 0: free
static atomic_uint lookalike_count;
static atomic_flag lookalike_lock = ATOMIC_FLAG_INIT;

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&lookalike_lock, memory_order_acquire))
        __builtin_ia32_pause();
}

static void unlock(void) {
    atomic_flag_clear_explicit(&lookalike_lock, memory_order_release);
}

static bool is_lookalike(uint64_t address) {
    if (!atomic_load_explicit(&lookalike_count, memory_order_acquire))
        return false;
    bool found = false;
    lock();
    for (unsigned i = 0; i < LOOKALIKES && !found; i++)
        found = lookalikes[i] == address;
    unlock();
    return found;
}

static void forget_lookalikes(uint64_t start, size_t size) {
    if (!atomic_load_explicit(&lookalike_count, memory_order_acquire))
        return;
    lock();
    for (unsigned i = 0; i < LOOKALIKES; i++) {
        if (lookalikes[i] && lookalikes[i] - start < size) {
            lookalikes[i] = 0;
            atomic_fetch_sub(&lookalike_count, 1);
        }
    }
    unlock();
}

// False when there is no room: one bit more is called undefined then.
static bool remember_lookalike(uint64_t address) {
    if (is_lookalike(address))
        return true;
    lock();
    unsigned i = 0;
    while (i < LOOKALIKES && lookalikes[i])
        i++;
    if (i < LOOKALIKES) {
        lookalikes[i] = address;
        atomic_fetch_add(&lookalike_count, 1);
    }
    unlock();
    return i < LOOKALIKES;
}

// ---- ranges ------------------------------------------------------------------------------------

bool shadow_undefined_values = true;
bool shadow_has_holes;
const struct shadow_watch *shadow_watch;

struct range {
    uint64_t start, end;
};

static void fill_large(void *argument) {
    const struct range *range = argument;
    tool_shadow_fill(range->start, range->end);
}

static void clear_large(void *argument) {
    const struct range *range = argument;
    tool_shadow_clear(range->start, range->end);
}

// Words, the last of which may overlap the one before; string instructions take their time to
// start.
static void set_bytes(uint64_t start, size_t size, uint8_t value) {
    uint8_t *at = shadow_of(start);
    uint64_t word = value * 0x0101010101010101ul;
    if (size < 8) {
        while (size--)
            *at++ = value;
        return;
    }
    if (size <= FEW) {
        uint8_t *last = at + size - 8;
        for (; at + 24 < last; at += 32)
            for (unsigned i = 0; i < 32; i += 8)
                __builtin_memcpy(at + i, &word, 8);
        for (; at < last; at += 8)
            __builtin_memcpy(at, &word, 8);
        __builtin_memcpy(last, &word, 8);
        return;
    }
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(size) : "a"(value) : "memory");
}

void shadow_make_noaccess(uint64_t start, size_t size) {
    if (!tool_has_shadow(start, size))
        return;
    forget_lookalikes(start, size);
    set_bytes(start, size, SHADOW_NOACCESS);
}

void shadow_make_undefined(uint64_t start, size_t size) {
    if (!shadow_undefined_values) {
        shadow_make_defined(start, size);
        return;
    }
    if (!tool_has_shadow(start, size))
        return;
    if (shadow_watch)
        shadow_watch->made_undefined(start, size);
    if (size < LARGE) {
        set_bytes(start, size, SHADOW_UNDEFINED);
        return;
    }
    struct range range = {start, start + size};
    tool_with_vectors(fill_large, &range);
}

void shadow_make_defined(uint64_t start, size_t size) {
    if (!tool_has_shadow(start, size))
        return;
    if (size < LARGE) {
        set_bytes(start, size, SHADOW_DEFINED);
        return;
    }
    struct range range = {start, start + size};
    tool_with_vectors(clear_large, &range);
}

void shadow_make_defined_if_addressable(uint64_t start, size_t size) {
    uint8_t bits;
    for (size_t i = 0; i < size; i++)
        if (shadow_state(start + i, &bits) && bits)
            shadow_set_bits(start + i, 0);
}

// ---- faults ------------------------------------------------------------------------------------

enum { PAGE = 4096 };

static _Thread_local struct {
    bool active, all;
    uint64_t page;
} missing;

void shadow_assume_missing(uint64_t address, bool all) {
    missing.active = true;
    missing.all = all;
    missing.page = address / PAGE;
}

void shadow_assume_nothing(void) {
    missing.active = false;
}

bool shadow_is_forbidden(uint64_t address) {
    return !missing.active && tool_is_engines(address);
}

static bool is_missing(uint64_t start, size_t size) {
    if (__builtin_expect(!missing.active, true))
        return false;
    return missing.all ||
           (start / PAGE <= missing.page && (start + size - 1) / PAGE >= missing.page);
}

// ---- one byte ----------------------------------------------------------------------------------

// Below the stack pointer of the thread that runs, on its own stack.
static bool is_below_stack(uint64_t address) {
    uint64_t rsp = tool_register(RSP), start, end;
    if (address >= rsp - RED_ZONE || !tool_own_stack(&start, &end))
        return false;
    return address >= start && rsp - start <= end - start;
}

static bool is_below_any_stack(uint64_t address) {
    return is_below_stack(address) || frames_is_below_other(address);
}

bool shadow_state(uint64_t address, uint8_t *bits) {
    *bits = 0;
    if (is_missing(address, 1))
        return false;
    if (!tool_has_shadow(address, 1))
        return !tool_is_engines(address);
    uint8_t byte = *shadow_of(address);
    if (byte == SHADOW_DEFINED)
        return true;
    if (byte == SHADOW_NOACCESS && !is_lookalike(address))
        return false;
    if (byte == SHADOW_UNDEFINED && is_below_any_stack(address))
        return false;
    *bits = byte;
    return true;
}

void shadow_set_bits(uint64_t address, uint8_t bits) {
    if (!tool_has_shadow(address, 1))
        return;
    if (!shadow_undefined_values)
        bits = 0;
    if (bits == SHADOW_NOACCESS && !remember_lookalike(address))
        bits = SHADOW_UNDEFINED;
    *shadow_of(address) = bits;
}

// ---- some bytes --------------------------------------------------------------------------------

// Whether a byte of the word has the value.
static inline bool has_byte(uint64_t word, uint8_t value) {
    const uint64_t ones = 0x0101010101010101;
    uint64_t zero = word ^ ones * value;
    return (zero - ones) & ~zero & ones * 0x80;
}

static unsigned piece_of(unsigned size) {
    return size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
}

static uint64_t get_piece(const uint8_t *at, unsigned piece) {
    uint64_t word = 0;
    if (piece == 8)
        __builtin_memcpy(&word, at, 8);
    else if (piece == 4)
        __builtin_memcpy(&word, at, 4);
    else
        __builtin_memcpy(&word, at, piece == 2 ? 2 : 1);
    return word;
}

static void put_piece(uint8_t *at, unsigned piece, uint64_t word) {
    if (piece == 8)
        __builtin_memcpy(at, &word, 8);
    else if (piece == 4)
        __builtin_memcpy(at, &word, 4);
    else
        __builtin_memcpy(at, &word, piece == 2 ? 2 : 1);
}

static bool is_plain_range(uint64_t address, unsigned size) {
    if (missing.active || !tool_has_shadow(address, size))
        return false;
    const uint8_t *at = shadow_of(address);
    bool any_undefined = false;
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        uint64_t word = get_piece(at + i, piece);
        if (has_byte(word, SHADOW_NOACCESS))
            return false;
        any_undefined |= has_byte(word, SHADOW_UNDEFINED);
    }
    // Below the stack pointer all is 0xff, or was written by somebody who had no business there.
    return !any_undefined || !is_below_any_stack(address);
}

bool shadow_read_word(uint64_t address, unsigned size, uint64_t *bits) {
    if (missing.active || !tool_has_shadow(address, size) || size > 8 || size & (size - 1))
        return false;
    uint64_t word = get_piece(shadow_of(address), size);
    if (word && (has_byte(word, SHADOW_NOACCESS) ||
                 (has_byte(word, SHADOW_UNDEFINED) && is_below_any_stack(address))))
        return false;
    *bits = word;
    return true;
}

bool shadow_read_bits(uint64_t address, unsigned size, void *bits) {
    if (!is_plain_range(address, size))
        return false;
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        put_piece((uint8_t *)bits + i, piece, get_piece(shadow_of(address) + i, piece));
    }
    return true;
}

bool shadow_write_bits(uint64_t address, unsigned size, const void *bits) {
    if (!shadow_undefined_values || !is_plain_range(address, size))
        return false;
    const uint8_t *from = bits;
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        if (has_byte(get_piece(from + i, piece), SHADOW_NOACCESS))
            return false;
    }
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        put_piece(shadow_of(address) + i, piece, get_piece(from + i, piece));
    }
    return true;
}

// ---- checks ------------------------------------------------------------------------------------

enum { LINE = 64 };

// Whether all of a line is defined, or all of it is undefined. Buffers of system calls are large.
static bool is_fine_line(const uint8_t *at, bool undefined_too) {
    uint64_t any = 0, all = ~0ul;
#pragma GCC unroll 8
    for (unsigned i = 0; i < LINE; i += 8) {
        uint64_t word;
        __builtin_memcpy(&word, at + i, 8);
        any |= word;
        all &= word;
    }
    return !any || (undefined_too && all == ~0ul);
}

// How many bytes from here on are addressable and defined, or all undefined, as far as words tell.
static size_t fine_run(uint64_t start, size_t size, bool undefined_too) {
    const uint8_t *at = shadow_of(start);
    size_t done = 0;
    uint64_t word;
    while (done + 8 <= size) {
        if (done + LINE <= size && is_fine_line(at + done, undefined_too)) {
            done += LINE;
            continue;
        }
        __builtin_memcpy(&word, at + done, 8);
        if (word && !(undefined_too && word == ~0ul))
            return done + (__builtin_ctzl(word) >> 3);
        done += 8;
    }
    while (done < size && !at[done])
        done++;
    return done;
}

static enum shadow_verdict check(uint64_t start, size_t size, uint64_t *bad, bool values) {
    if (is_missing(start, size)) {
        *bad = start;
        return SHADOW_BAD_ADDRESS;
    }
    if (!tool_has_shadow(start, size)) {
        *bad = start;
        return tool_is_engines(start) ? SHADOW_BAD_ADDRESS : SHADOW_FINE;
    }
    bool undefined_too = !values && !is_below_stack(start) && !is_below_stack(start + size - 1);
    size_t done = 0;
    for (;;) {
        done += fine_run(start + done, size - done, undefined_too);
        if (done == size)
            return SHADOW_FINE;
        uint8_t bits;
        *bad = start + done;
        if (!shadow_state(start + done, &bits))
            return SHADOW_BAD_ADDRESS;
        if (values && bits)
            return SHADOW_BAD_VALUE;
        done++;
    }
}

enum shadow_verdict shadow_check_addressable(uint64_t start, size_t size, uint64_t *bad) {
    return check(start, size, bad, false);
}

enum shadow_verdict shadow_check_defined(uint64_t start, size_t size, uint64_t *bad) {
    return check(start, size, bad, true);
}

// ---- copies ------------------------------------------------------------------------------------

static void copy_byte(uint64_t to, uint64_t from) {
    uint8_t bits;
    if (!shadow_state(from, &bits))
        bits = SHADOW_UNDEFINED;
    shadow_set_bits(to, bits);
}

// A word of shadow that can be copied as it is.
static bool is_plain(uint64_t word) {
    return word == 0 || word == ~0ul;
}

static void copy_up(uint64_t to, uint64_t from, size_t size) {
    while (size) {
        uint64_t word;
        __builtin_memcpy(&word, shadow_of(from), 8);
        if (size >= 8 && is_plain(word)) {
            __builtin_memcpy(shadow_of(to), &word, 8);
            to += 8;
            from += 8;
            size -= 8;
        } else {
            copy_byte(to++, from++);
            size--;
        }
    }
}

static void copy_down(uint64_t to, uint64_t from, size_t size) {
    while (size) {
        uint64_t word;
        __builtin_memcpy(&word, shadow_of(from + size - 8), 8);
        if (size >= 8 && is_plain(word)) {
            size -= 8;
            __builtin_memcpy(shadow_of(to + size), &word, 8);
        } else {
            size--;
            copy_byte(to + size, from + size);
        }
    }
}

static void copy_watched(uint64_t to, uint64_t from, size_t size) {
    shadow_watch->copied(to, from, size);
    if (to < from)
        copy_up(to, from, size);
    else
        copy_down(to, from, size);
}

void shadow_copy(uint64_t to, uint64_t from, size_t size) {
    if (!tool_has_shadow(to, size))
        return;
    if (!tool_has_shadow(from, size)) {
        shadow_make_defined(to, size);
        return;
    }
    uint64_t bad;
    if (shadow_check_defined(from, size, &bad) == SHADOW_FINE)
        shadow_make_defined(to, size);
    else if (shadow_watch)
        copy_watched(to, from, size);
    else if (to < from)
        copy_up(to, from, size);
    else
        copy_down(to, from, size);
}
