#include "tools/memcheck/target/shadow/shadow.h"

#include "base/x86.h"
#include "tools/memcheck/target/shadow/chunks.h"
#include "tools/memcheck/target/shadow/frames.h"

enum { FEW = 512 }; // up to here words are written one by one

// ---- ranges ------------------------------------------------------------------------------------

bool shadow_undefined_values = true;
bool shadow_has_holes;
const struct shadow_watch *shadow_watch;

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

// Whether a byte of the word has the value.
static inline bool has_byte(uint64_t word, uint8_t value) {
    const uint64_t ones = 0x0101010101010101;
    uint64_t zero = word ^ ones * value;
    return (zero - ones) & ~zero & ones * 0x80;
}

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

// How many bytes from here on are addressable, and defined unless undefined_too, as far as words
// tell.
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
        if (word && !(undefined_too && !has_byte(word, SHADOW_NOACCESS)))
            return done + (__builtin_ctzl(word) >> 3);
        done += 8;
    }
    while (done < size && !at[done])
        done++;
    return done;
}

struct filling {
    uint64_t start, end;
    uint8_t value;
};

static void fill_large(void *argument) {
    const struct filling *filling = argument;
    if (filling->value == SHADOW_DEFINED)
        tool_shadow_clear(filling->start, filling->end);
    else
        tool_shadow_fill(filling->start, filling->end, filling->value);
}

static void set_range(uint64_t start, size_t size, uint8_t value) {
    if (size < SHADOW_SMALL) {
        set_bytes(start, size, value);
        return;
    }
    struct filling filling = {start, start + size, value};
    tool_with_vectors(fill_large, &filling);
}

void shadow_make_noaccess(uint64_t start, size_t size) {
    if (!tool_has_shadow(start, size))
        return;
    lookalikes_forget(start, size);
    set_range(start, size, SHADOW_NOACCESS);
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
    set_range(start, size, SHADOW_UNDEFINED);
}

// Programs overwrite large buffers again and again. Pages whose shadow is 0 already should stay.
void shadow_make_defined(uint64_t start, size_t size) {
    if (!tool_has_shadow(start, size))
        return;
    if (size < SHADOW_SMALL || fine_run(start, size, false) < size)
        set_range(start, size, SHADOW_DEFINED);
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
    bool active, is_known;
    uint64_t page;
} missing;

void shadow_assume_missing(uint64_t address, bool is_known) {
    missing.active = true;
    missing.is_known = is_known;
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
    uint64_t last = start + size - 1;
    if (missing.is_known)
        return start / PAGE <= missing.page && last / PAGE >= missing.page;
    return !is_canonical(start) || !is_canonical(last);
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
    if (byte == SHADOW_NOACCESS && !lookalike_is(address))
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
    if (bits == SHADOW_NOACCESS && !lookalike_add(address))
        bits = SHADOW_UNDEFINED;
    *shadow_of(address) = bits;
}

// ---- some bytes --------------------------------------------------------------------------------

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

// Whether the bytes with the code for no access are all lookalikes.
static bool __attribute__((noinline)) are_lookalikes(uint64_t address, unsigned size) {
    for (unsigned i = 0; i < size; i++)
        if (*shadow_of(address + i) == SHADOW_NOACCESS && !lookalike_is(address + i))
            return false;
    return true;
}

// Bytes with that pattern are about to be written there.
static bool __attribute__((noinline))
add_lookalikes(uint64_t address, unsigned size, const uint8_t *bits) {
    for (unsigned i = 0; i < size; i++)
        if (bits[i] == SHADOW_NOACCESS && !lookalike_add(address + i))
            return false;
    return true;
}

static bool is_plain_range(uint64_t address, unsigned size) {
    if (missing.active || !tool_has_shadow(address, size))
        return false;
    const uint8_t *at = shadow_of(address);
    bool any_undefined = false;
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        uint64_t word = get_piece(at + i, piece);
        if (has_byte(word, SHADOW_NOACCESS) && !are_lookalikes(address + i, piece))
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
    if (word && ((has_byte(word, SHADOW_NOACCESS) && !are_lookalikes(address, size)) ||
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
        if (has_byte(get_piece(from + i, piece), SHADOW_NOACCESS) &&
            !add_lookalikes(address + i, piece, from + i))
            return false;
    }
    for (unsigned i = 0, piece; i < size; i += piece) {
        piece = piece_of(size - i);
        put_piece(shadow_of(address) + i, piece, get_piece(from + i, piece));
    }
    return true;
}

// ---- checks ------------------------------------------------------------------------------------

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
    return !has_byte(word, SHADOW_NOACCESS);
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

void shadow_moved(uint64_t to, uint64_t from, size_t size) {
    if (!tool_has_shadow(to, size) || !tool_has_shadow(from, size))
        return;
    lookalikes_move(to, from, size);
    if (shadow_watch)
        shadow_watch->moved(to, from, size);
}
