// The ledger of wire/findings.h, on the target's side: counts that outlive the process, and the
// supervisor's answers.
//
// Counting takes no lock. The process waits for an answer for a minute at most, then it goes on.
#ifndef QUERN_MEMCHECK_LEDGER_H
#define QUERN_MEMCHECK_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/findings.h"

void ledger_start(void);     // reads options
void ledger_forking(void);   // before a fork
void ledger_fork_made(void); // in the parent, also when it failed
void ledger_forked(void);    // a ledger of its own for the child, which begins as a copy

struct ledger_sites *ledger_sites(void); // NULL: not wanted

// The number of a new context plus 1; 0: there is no room. One thread at a time.
uint32_t ledger_new_context(void);
uint32_t ledger_contexts(void);
void ledger_count(uint32_t context);
uint64_t ledger_count_of(uint32_t context);
uint64_t ledger_found(void);
// Keeps the heap's totals for the case that the process is killed.
void ledger_note_heap(void);
// Counters for one more heap, which nobody else writes; never NULL. With very many heaps, the last
// ones share theirs, and a killed process's totals may be a little too low.
struct ledger_heap *ledger_heap_counters(void);

uint32_t ledger_shown(void);
bool ledger_is_closed(void);
enum ledger_verdict ledger_wait_verdict(uint32_t context);
bool ledger_wait_end(void);   // whether the process had errors
bool ledger_has_failed(void); // as far as the supervisor has said
const struct ledger_answers *ledger_wait_search(uint32_t search); // the number of a leak search

#endif
