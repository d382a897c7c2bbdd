// Target memory: the ledger with its lock, reading code from it, and watching code that is written.
//
// Lock order: space lock, then cache lock (cache/block.h). System calls that change mappings hold
// the space lock for writing from before the host call until ledger and cache agree with it;
// translation holds it for reading.
//
// Watched pages. A page that the target may write and from which code has been translated is made
// read-only natively. A write faults, the page's translations are dropped and it becomes writable
// again. Where that happens too often (data beside code, a JIT that patches all the time) the page
// is not watched any more and blocks from it check their code whenever they are entered.
#ifndef QUERN_ENGINE_MEMORY_H
#define QUERN_ENGINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "engine/space/space.h"

extern struct space target_space;

void memory_read_lock(void);
void memory_write_lock(void);
void memory_unlock(void);
void memory_forked(void);

// Code as it was read from target memory.
struct code_bytes {
    uint64_t pc;
    unsigned size; // readable and executable bytes from pc on
    bool is_module; // of a file, and not writable
    uint64_t mapping; // where the mapping begins that it is in
    bool checked;  // may change without notice: compare at each entry
    uint8_t bytes[1024 + 16];
};

// Reads code for translation; both locks held. Returns 0, or the si_code of the SIGSEGV that
// executing at pc raises.
int memory_fetch_code(uint64_t pc, struct code_bytes *);

// A write to `address` has faulted: true if the page was watched; it is writable now and its
// translations are gone. Takes the locks.
bool memory_write_fault(uint64_t address);
// Whether the target has mapped memory there, with whatever rights. Takes the lock.
bool memory_is_targets(uint64_t address);
// Makes all watched pages writable, as before a system call is tried again. True if there were any.
bool memory_unwatch_all(void);

// Bookkeeping for mappings that are about to change in the ledger; write lock held. Drops
// translations and watches in the range.
void memory_changed(uint64_t start, uint64_t end);
// The contents are gone (madvise), the mappings are not. Takes the locks.
void memory_discarded(uint64_t start, uint64_t end);

#endif
