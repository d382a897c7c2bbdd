// Searching target memory word by word. Aligned words do not reach into pages that the function
// itself would not touch; what lies in them beyond its end is read but not looked at.
#ifndef QUERN_MEMCHECK_WORDS_H
#define QUERN_MEMCHECK_WORDS_H

#include <stddef.h>
#include <stdint.h>

#define WORD_ONES 0x0101010101010101ul
#define WORD_TOPS 0x8080808080808080ul

static inline uint64_t word_load(uint64_t address) {
    return *(const volatile uint64_t *)address;
}

static inline uint8_t byte_load(uint64_t address) {
    return *(const volatile uint8_t *)address;
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

#endif
