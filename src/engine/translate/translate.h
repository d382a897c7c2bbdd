// From target code to a block: decoding, copying, inserting the tool's code, linking. builder.h has
// the parts.
//
// The dispatcher calls translate_block when no block exists for an address. Functions say which
// locks they need.
#ifndef QUERN_ENGINE_TRANSLATE_TRANSLATE_H
#define QUERN_ENGINE_TRANSLATE_TRANSLATE_H

#include <stdint.h>
#include "engine/cache/block.h"
#include "engine/memory/memory.h"

// Translates the block at code->pc for a version (cache/version.h). The cache lock is held.
// Returns NULL when the cache is to be flushed: it is full, or its blocks are no longer right.
struct block *translate_block(const struct code_bytes *code, unsigned version);
// The same for one instruction only, in a block that no other leads to.
struct block *translate_single(const struct code_bytes *code, unsigned version, bool unredirected);

// Drops all translations and starts over with an empty cache and at least that kind of look-up. The
// calling thread is busy afterwards.
void translate_start_over(enum cache_lookup);

// Once, when the program has been loaded: finds a place for the cache.
void translate_place_cache(void);
// Moves what is the engine's out of the way, as far as it can be moved, so that the target can have
// memory with these rights at [start, end). From a system call, without locks.
void translate_make_room(uint64_t start, uint64_t end, int prot);
// Extends the jump table for code at pc, if it can be. Without locks.
void translate_add_table_piece(uint64_t pc);

// The target sees a copy of the vdso, in reach of the cache. The data that its code refers to stays
// with the real one: what leads out of the copy is taken from there.
void translate_place_vdso(uint64_t copy, uint64_t size, uint64_t real);

// Shows the tool the fault at self->pc that is about to be delivered (show.c).
void translate_show_fault(int number, int code, uint64_t address, bool is_fetch);
// Prints a block's target and translated code to the log.
void translate_print(const struct block *, const struct code_bytes *code);

#endif
