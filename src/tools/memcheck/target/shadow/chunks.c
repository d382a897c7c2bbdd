#include "tools/memcheck/target/shadow/chunks.h"

#include <sys/mman.h>

#include "engine/tool.h"

enum { ADDRESS_BITS = 47, WORD_BITS = 64 };

_Atomic(struct chunk *) *chunk_table;

// ---- chunks ------------------------------------------------------------------------------------

static void *reserve(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// Keeps what another thread has put there first.
static bool put(void *place, void *made, size_t size) {
    void *expected = NULL;
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n((void **)place, &expected, made, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        munmap(made, size);
    return true;
}

static void make(void *address) {
    size_t table_size = sizeof *chunk_table << (ADDRESS_BITS - CHUNK_BITS);
    uint64_t number = *(const uint64_t *)address >> CHUNK_BITS;
    if (!__atomic_load_n(&chunk_table, __ATOMIC_ACQUIRE) &&
        !put(&chunk_table, reserve(table_size), table_size))
        return;
    put(&chunk_table[number], reserve(sizeof(struct chunk)), sizeof(struct chunk));
}

struct chunk *chunk_make(uint64_t address) {
    struct chunk *chunk = chunk_find(address);
    if (chunk)
        return chunk;
    tool_with_vectors(make, &address);
    return chunk_find(address);
}

// ---- lookalikes --------------------------------------------------------------------------------

static uint64_t *word_of(struct chunk *chunk, uint64_t address) {
    return &chunk->lookalikes[address % CHUNK / WORD_BITS];
}

static uint64_t bit_of(uint64_t address) {
    return (uint64_t)1 << address % WORD_BITS;
}

bool lookalike_is(uint64_t address) {
    struct chunk *chunk = chunk_find(address);
    return chunk && __atomic_load_n(word_of(chunk, address), __ATOMIC_RELAXED) & bit_of(address);
}

bool lookalike_add(uint64_t address) {
    struct chunk *chunk = chunk_make(address);
    if (!chunk)
        return false;
    uint64_t *word = word_of(chunk, address);
    if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit_of(address))
        return true;
    __atomic_fetch_or(word, bit_of(address), __ATOMIC_RELEASE);
    if (!atomic_load_explicit(&chunk->has_lookalikes, memory_order_relaxed))
        atomic_store_explicit(&chunk->has_lookalikes, true, memory_order_release);
    return true;
}

static void drop_all(void *argument) {
    struct chunk *chunk = argument;
    madvise(chunk->lookalikes, sizeof chunk->lookalikes, MADV_DONTNEED);
}

// Part of one chunk. Other threads change bits of other bytes in the same words.
static void forget_part(struct chunk *chunk, uint64_t start, uint64_t end) {
    if (end - start == CHUNK) {
        atomic_store_explicit(&chunk->has_lookalikes, false, memory_order_relaxed);
        tool_with_vectors(drop_all, chunk);
        return;
    }
    for (uint64_t at = start, next; at < end; at = next) {
        next = (at | (WORD_BITS - 1)) + 1;
        if (next > end)
            next = end;
        uint64_t bits = (~0ul >> (WORD_BITS - (next - at))) << at % WORD_BITS;
        uint64_t *word = word_of(chunk, at);
        if (__atomic_load_n(word, __ATOMIC_RELAXED) & bits)
            __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
    }
}

static uint64_t end_of_chunk(uint64_t address, uint64_t end) {
    uint64_t next = (address | (CHUNK - 1)) + 1;
    return next < end ? next : end;
}

static bool has_lookalikes(const struct chunk *chunk) {
    return chunk && atomic_load_explicit(&chunk->has_lookalikes, memory_order_acquire);
}

void lookalikes_forget(uint64_t start, size_t size) {
    if (__builtin_expect(!__atomic_load_n(&chunk_table, __ATOMIC_RELAXED), true))
        return;
    for (uint64_t at = start, next, end = start + size; at < end; at = next) {
        struct chunk *chunk = chunk_find(at);
        next = end_of_chunk(at, end);
        if (has_lookalikes(chunk))
            forget_part(chunk, at, next);
    }
}

// A word of bits at a time; memory moves by whole pages.
void lookalikes_move(uint64_t to, uint64_t from, size_t size) {
    lookalikes_forget(to, size);
    for (uint64_t at = from, next, end = from + size; at < end; at = next) {
        struct chunk *chunk = chunk_find(at);
        next = end_of_chunk(at, end);
        for (; has_lookalikes(chunk) && at < next; at += WORD_BITS) {
            uint64_t bits = __atomic_load_n(word_of(chunk, at), __ATOMIC_RELAXED);
            for (; bits; bits &= bits - 1)
                lookalike_add(to + (at - from) + __builtin_ctzl(bits));
        }
    }
}
