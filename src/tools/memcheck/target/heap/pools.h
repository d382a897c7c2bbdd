// Memory pools that the target announces with client requests (CREATE_MEMPOOL and its kin): pieces
// of memory that it gives out itself.
//
// Words
//   anchor    the address by which the target names a pool; it need not be its memory
//   chunk     a piece that the pool has given out. The leak search and the description of addresses
//             treat it as a block, and no longer the block of the heap that it was taken from
//   metapool  a pool whose chunks the target divides again with MALLOCLIKE_BLOCK. With auto-free,
//             these blocks end with the chunk
//
// Called from hooks on any thread.
#ifndef QUERN_MEMCHECK_POOLS_H
#define QUERN_MEMCHECK_POOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pool_flags { POOL_AUTO_FREE = 1, POOL_META = 2 };

void pools_forked(void); // in the child
void pools_create(uint64_t anchor, size_t red_zone, bool zeroed, unsigned flags);
void pools_destroy(uint64_t anchor);
void pools_allocate(uint64_t anchor, uint64_t start, size_t size);
void pools_free(uint64_t anchor, uint64_t start);
// Ends all chunks outside the range, and the parts of chunks that lie outside.
void pools_trim(uint64_t anchor, uint64_t start, size_t size);
void pools_move(uint64_t anchor, uint64_t to);
void pools_change(uint64_t anchor, uint64_t old_start, uint64_t start, size_t size);
bool pools_exists(uint64_t anchor);

struct pool_chunk {
    uint64_t start;
    size_t size;
    uint32_t made_at; // a stack
};
// The chunk of a metapool, or of another pool, that the address is inside of or in the red zone of.
bool pools_find(uint64_t address, bool of_metapool, struct pool_chunk *);

// While all other threads are stopped: for the leak search.
struct leak_blocks;
size_t pools_chunk_count(void);
void pools_add_chunks(struct leak_blocks *);

#endif
