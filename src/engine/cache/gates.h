// Gates: pieces of generated code at the beginning of the cache. Through them blocks leave the
// cache, look destinations up, and call C code. A flush removes them with everything else.
//
// They are written when the cache is empty, and with the cache lock held when a block first needs
// one; code that is written is never changed, so that running through it takes no lock.
#ifndef QUERN_ENGINE_CACHE_GATES_H
#define QUERN_ENGINE_CACHE_GATES_H

#include <stdint.h>

#include "engine/tool.h"
#include "engine/assembler/sequences.h"

enum { CACHE_GATES_SIZE = 16384 };

// The look-up of blocks that the jump table has no place for, by the low 16 bits of a key: for code
// that the jump table is not for the destination, for versions other than 0 (cache/version.h) the
// destination plus cache_version_key. Keys are stored negated, so that the sum of both is zero
// exactly when they match, and no flags are needed.
struct far_table {
    uint64_t *keys, *codes;
};

// The first gates; all others are gone.
void cache_write_gates(const struct far_table *high_code, const struct far_table *versions);

// Gates at fixed places of the cache, through which exits leave it.
extern uint64_t cache_gate_link, cache_gate_high_lookup, cache_gate_version_lookup;
// The gate through which translated code calls function(rdi) with the target's general registers at
// hand: rdi and rsp are spilled, and the thread is on the engine's stack. With the lock held.
uint64_t cache_gate_saved(void (*function)(void *));
// Around the writing of a gate.
struct assembler cache_gate_begin(void);
void cache_gate_end(const struct assembler *);
// At the end of a gate through which C code was called.
void cache_write_step_if_pending(struct assembler *);
// Where a function's gate of this kind is noted; 0: it is still to be written.
enum gate_kind { GATE_SAVED, GATE_FAST, GATE_TRY, GATE_QUICK, GATE_QUICK_KEEPS_FLAGS };
uint64_t *cache_gate_of(const void *function, enum gate_kind);
// The gate through which translated code calls a function that leaves vector registers alone, on
// the engine's stack, with edi as it is, the target's stack pointer and the thread's state of the
// tool. With the lock held.
uint64_t cache_gate_to(void (*function)(uint32_t, uint64_t, void *));
// The same for what is tried in place of a function that is to be replaced; rsp alone is spilled.
// The zero flag says that it was not done, and nothing has changed then but flags.
uint64_t cache_gate_try(tool_quick_hook *);

#endif
