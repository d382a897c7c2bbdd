// What some bytes of target memory need beside their shadow byte, found by address in constant time
// and without a lock.
//
// Words
//   chunk      4 MiB of target memory, aligned, and what is kept for it. It is made when something
//              is to be kept there and stays for good; pages of it that nobody writes cost nothing
//   lookalike  an addressable byte whose undefined bits are those of SHADOW_NOACCESS
//
// A bit of a byte is looked at only if its shadow is SHADOW_NOACCESS. So it must be right then, and
// may be stale while the shadow is anything else: memory that is mapped, unmapped or written needs
// no care.
//
// General registers only. Any thread.
#ifndef QUERN_MEMCHECK_CHUNKS_H
#define QUERN_MEMCHECK_CHUNKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHUNK_BITS = 22, CHUNK = 1 << CHUNK_BITS, CHUNK_PAGES = CHUNK / 4096 };

struct origin_page; // origins_slow.h

struct chunk {
    uint64_t lookalikes[CHUNK / 64]; // a bit for each byte
    _Atomic(struct origin_page *) origins[CHUNK_PAGES];
    atomic_bool has_lookalikes;
};

extern _Atomic(struct chunk *) *chunk_table; // NULL: no chunk was ever made

static inline struct chunk *chunk_find(uint64_t address) {
    _Atomic(struct chunk *) *table = __atomic_load_n(&chunk_table, __ATOMIC_ACQUIRE);
    return table ? atomic_load_explicit(&table[address >> CHUNK_BITS], memory_order_acquire) : NULL;
}

// NULL: no memory.
struct chunk *chunk_make(uint64_t address);

bool lookalike_is(uint64_t address);
// False: no memory.
bool lookalike_add(uint64_t address);
// The bytes are about to be not addressable.
void lookalikes_forget(uint64_t start, size_t size);
// The shadow of memory has been moved.
void lookalikes_move(uint64_t to, uint64_t from, size_t size);

#endif
