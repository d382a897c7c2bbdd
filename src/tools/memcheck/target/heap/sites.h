// The heap by place: how much each call stack has allocated and freed (--xtree-memory).
//
// Words: a *site* is a call stack that has allocated, by its number (tools/shared/stacks.h).
//
// The numbers are in a memory file that the supervisor shares (wire/findings.h), so they survive a
// process that is killed. Threads take no lock: the table of sites is only added to. Without
// --xtree-memory nobody calls in here. General registers only; callable from any hook.
#ifndef QUERN_MEMCHECK_SITES_H
#define QUERN_MEMCHECK_SITES_H

#include <stddef.h>
#include <stdint.h>

// Live: what is alive, by where it was made. Full: also all that ever was, and frees, by where they
// happened.
enum sites_wanted { SITES_NONE, SITES_LIVE, SITES_FULL };
extern enum sites_wanted sites_wanted;

void sites_start(void); // reads options; after the ledger
void sites_made(uint32_t stack, size_t size);
void sites_freed(uint32_t made_at, uint32_t freed_at, size_t size);
void sites_resized(uint32_t made_at, size_t old_size, size_t size); // in place

#endif
