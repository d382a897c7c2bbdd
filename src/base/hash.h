// Hash functions: one set of constants for every hash table of Quern.
//
// Words:
//   hash    64 bits that depend on all bits of a key
//   bucket  the index that a hash gives in a table
//
// The multiplication by HASH_FACTOR (2^64 divided by the golden ratio) carries every bit of a key
// upwards, so its upper bits are the good ones. hash_bucket takes those directly. hash_integer and
// hash_add fold them down, so that callers may mask their result.
//
// Hashes are for tables in memory. Only hash_bytes (FNV-1a) is fixed for ever: fingerprints of
// findings are made of it and stand in baseline files.
//
// Both sides. No allocation, no libc, integer arithmetic only: code in the target that may use
// general registers only can call everything here, also from a signal handler.
#ifndef QUERN_BASE_HASH_H
#define QUERN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)
// Where hash_bytes and hash_text begin, and what they multiply by.
#define HASH_TEXT_START  UINT64_C(0xcbf29ce484222325)
#define HASH_TEXT_FACTOR UINT64_C(0x100000001b3)

// An index for a table of 1 << bits entries; bits is between 1 and 63.
static inline uint64_t hash_bucket(uint64_t key, unsigned bits) {
    return key * HASH_FACTOR >> (64 - bits);
}

// Adds a part of a key to the hash of the parts before it. Begin with 0 or any other constant.
static inline uint64_t hash_add(uint64_t hash, uint64_t part) {
    hash = (hash ^ part) * HASH_FACTOR;
    return hash ^ hash >> 29;
}

// Good for masks as long as keys do not have more than 24 zero bits in common at their lower end,
// as addresses, sizes and numbers do not.
static inline uint64_t hash_integer(uint64_t key) {
    uint64_t hash = key * HASH_FACTOR;
    return hash ^ hash >> 32;
}

// Adds bytes to a hash that began with HASH_TEXT_START.
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * HASH_TEXT_FACTOR;
    return hash;
}

// The same for a string, without its terminating NUL.
static inline uint64_t hash_text(uint64_t hash, const char *text) {
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * HASH_TEXT_FACTOR;
    return hash;
}

// A hash of bytes that reads eight at a time: for tables of long texts.
static inline uint64_t hash_words(const void *bytes, size_t size) {
    const unsigned char *at = (const unsigned char *)bytes;
    uint64_t hash = size, word = 0;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        __builtin_memcpy(&word, at, sizeof word);
        hash = hash_add(hash, word);
    }
    for (word = 0; size; size--)
        word = word << 8 | at[size - 1];
    return hash_add(hash, word);
}

#endif
