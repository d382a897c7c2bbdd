// Simulated caches and branch prediction, the same on every processor. Each thread has its own.
//
// Caches: I1, D1, and LL behind both. The low bits of a line's number choose its set. The least
// recently used line is evicted first. Writes load lines as reads do. An access to two lines is one
// access, and at most one miss.
//
// --simulate-wb: a write goes through D1 to LL, and the line is dirty from then on. Misses that
// evict a dirty line are counted separately. --simulate-hwpref: when misses in the first level walk
// through memory line by line, LL loads the fifth line ahead. Eight streams are followed; each 4
// KiB of memory belong to one.
//
// Branches: one of 16384 two-bit counters predicts a conditional branch. The low 7 bits of its
// address and the outcomes of the last 7 branches choose the counter. An indirect branch is
// predicted to go where the last one went whose address has the same low 9 bits. Returns are always
// predicted.
//
// The functions named simulate_* are fast calls (engine/tool.h): general registers only.
#ifndef QUERN_TOOLS_CALLGRIND_SIMULATE_H
#define QUERN_TOOLS_CALLGRIND_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/callgrind/target/events.h"

extern bool simulate_caches, simulate_branches, simulate_write_back, simulate_uses;
extern unsigned simulate_code_bits; // the line size of I1 is 1 << this
extern uint32_t simulate_line;      // bytes of the smallest line: no access counts for more

void simulate_start(void); // reads options
void simulate_thread_start(struct thread *);
void simulate_thread_end(struct thread *);
void simulate_thread_again(const struct thread *); // after another has run in its place
void simulate_end(void);                           // the process ends

// The argument is the id of the event of a miss in the first level; the one after it is the event
// of a miss in the last.
void simulate_code(uint32_t id, uint64_t rsp, void *thread, uint64_t address);
void simulate_data(uint32_t id, uint64_t rsp, void *thread, uint64_t address);
// The argument is the id of the event of a branch; the one after it is that of a wrong prediction.
void simulate_taken(uint32_t id, uint64_t rsp, void *thread);
void simulate_not_taken(uint32_t id, uint64_t rsp, void *thread);
void simulate_indirect(uint32_t id, uint64_t rsp, void *thread, uint64_t target);
// Before the first of two branches that may be joined (joined.h): it goes to where the second one
// is met, or elsewhere. The id is the first's; the size that is noted of it is the second's id and
// flags.
enum { JOINED_TAKEN = 1, JOINED_BEHIND = 2, JOINED_SECOND = 4 };
void simulate_first(uint32_t id, uint64_t rsp, void *thread);
void simulate_only(uint32_t id, uint64_t rsp, void *thread);
// With branches that may be joined, before a direct jump or call, and before returns and system
// calls. The argument is the lower half of known_beyond's address (known.h).
void simulate_jump(uint32_t beyond, uint64_t rsp, void *thread);
void simulate_piece_end(uint32_t, uint64_t rsp, void *thread);
// Code that is skipped has read and written; that counts at the site that it was reached from. The
// argument is the number of reads, and of writes from bit 8 on.
void simulate_skipped(uint32_t accesses, uint64_t rsp, void *thread);

#endif
