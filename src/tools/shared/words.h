// Target memory, word by word: searching, copying, filling, comparing. For replacements of the C
// library's functions, with general registers only; run within tool_try.
//
// Aligned words do not reach into pages that the function itself would not touch; what lies in them
// beyond its end is read but not looked at.
#ifndef QUERN_TOOLS_WORDS_H
#define QUERN_TOOLS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORD_ONES 0x0101010101010101ul
#define WORD_TOPS 0x8080808080808080ul

static inline uint64_t word_load(uint64_t address) {
    return *(const volatile uint64_t *)address;
}

static inline void word_store(uint64_t address, uint64_t word) {
    *(volatile uint64_t *)address = word;
}

static inline uint8_t byte_load(uint64_t address) {
    return *(const volatile uint8_t *)address;
}

static inline void byte_store(uint64_t address, uint8_t byte) {
    *(volatile uint8_t *)address = byte;
}

// The lowest bit that is set belongs to the first byte that is 0; higher ones may be wrong.
static inline uint64_t word_zeros(uint64_t word) {
    return (word - WORD_ONES) & ~word & WORD_TOPS;
}

// Bytes of the word at an address that lie before it are taken for something else.
static inline uint64_t word_mask(uint64_t address) {
    return ~0ul << (address & 7) * 8;
}

// How many bytes before the first that is `a` or `b`, at most size.
static inline size_t bytes_before(uint64_t start, uint8_t a, uint8_t b, size_t size) {
    uint64_t at = start & ~7ul, first = a * WORD_ONES, second = b * WORD_ONES;
    uint64_t mask = word_mask(start);
    uint64_t end = size > ~start ? ~0ul : start + size;
    for (; at < end; at += 8, mask = ~0ul) {
        uint64_t word = word_load(at);
        // Bytes before the start: a difference in every bit cannot be 0.
        uint64_t found = word_zeros((word ^ first) | ~mask) | word_zeros((word ^ second) | ~mask);
        if (found) {
            size_t before = at + (__builtin_ctzl(found) >> 3) - start;
            return before < size ? before : size;
        }
    }
    return size;
}

// How many bytes two ranges have in common before they differ first.
static inline size_t bytes_common(uint64_t a, uint64_t b, size_t size) {
    size_t done = 0;
    for (; done + 8 <= size; done += 8) {
        uint64_t difference = word_load(a + done) ^ word_load(b + done);
        if (difference)
            return done + (__builtin_ctzl(difference) >> 3);
    }
    while (done < size && byte_load(a + done) == byte_load(b + done))
        done++;
    return done;
}

enum { BYTES_LARGE = 256 }; // from here on string instructions are faster

static inline void bytes_copy_up(uint64_t to, uint64_t from, size_t size) {
    if (size >= BYTES_LARGE) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
        return;
    }
    for (; size >= 8; size -= 8, to += 8, from += 8)
        word_store(to, word_load(from));
    for (; size; size--)
        byte_store(to++, byte_load(from++));
}

static inline void bytes_copy_down(uint64_t to, uint64_t from, size_t size) {
    for (; size >= 8; size -= 8)
        word_store(to + size - 8, word_load(from + size - 8));
    while (size--)
        byte_store(to + size, byte_load(from + size));
}

// A copy that faults is begun anew when the fault has been dealt with; one that has overwritten its
// source by then would go wrong. So every page is touched first.
static inline void bytes_touch(uint64_t start, size_t size) {
    for (uint64_t at = start; at < start + size; at = (at | 4095) + 1)
        __asm__ volatile("lock orb $0, %0" : "+m"(*(uint8_t *)at));
}

// As memmove does.
static inline void bytes_move(uint64_t to, uint64_t from, size_t size) {
    if (to == from || !size)
        return;
    bool overlap = to - from < size || from - to < size;
    if (overlap && (to ^ (to + size - 1)) >> 12)
        bytes_touch(to, size);
    if (to - from >= size)
        bytes_copy_up(to, from, size);
    else
        bytes_copy_down(to, from, size);
}

static inline void bytes_fill(uint64_t to, uint8_t byte, size_t size) {
    if (size >= BYTES_LARGE) {
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
        return;
    }
    for (; size >= 8; size -= 8, to += 8)
        word_store(to, byte * WORD_ONES);
    while (size--)
        byte_store(to++, byte);
}

#endif
