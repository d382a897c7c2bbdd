// From target code to a block. See builder.h for the parts.
#ifndef QUERN_ENGINE_TRANSLATE_TRANSLATE_H
#define QUERN_ENGINE_TRANSLATE_TRANSLATE_H

#include <stdint.h>
#include "engine/cache/block.h"

// Code as it was read from target memory.
struct code_bytes {
    uint64_t pc;
    unsigned size; // readable and executable bytes from pc on
    bool is_module; // of a file, and not writable
    uint64_t mapping; // where the mapping begins that it is in
    bool checked;  // may change without notice: compare at each entry
    uint8_t bytes[1024 + 16];
};

// Translates the block at code->pc for a version (cache/version.h). The cache lock is held.
// Returns NULL when the cache is to be flushed: it is full, or its blocks are no longer right.
struct block *translate_block(const struct code_bytes *code, unsigned version);
// The same for one instruction only, in a block that no other leads to.
struct block *translate_single(const struct code_bytes *code, unsigned version, bool unredirected);

// The target sees a copy of the vdso, in reach of the cache. The data that its code refers to stays
// with the real one: what leads out of the copy is taken from there.
void translate_place_vdso(uint64_t copy, uint64_t size, uint64_t real);

// Prints a block's target and translated code to the log.
void translate_print(const struct block *, const struct code_bytes *code);

#endif
