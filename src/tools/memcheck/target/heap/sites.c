#include "tools/memcheck/target/heap/sites.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/shared/stacks.h"

enum { SLOTS = 2 * LEDGER_SITES }; // a place of each stack that has one; at most half full

enum sites_wanted sites_wanted;
static struct ledger_sites *sites;
static _Atomic uint64_t *slots; // number of the stack; above it, of its place

void sites_start(void) {
    sites = ledger_sites();
    if (!sites)
        return;
    slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) {
        tool_say("memcheck: out of memory");
        _Exit(1);
    }
    sites->count = 1;
    sites_wanted = strcmp(tool_option("xtree-memory"), "full") == 0 ? SITES_FULL : SITES_LIVE;
}

// Room for `count` more; its first. False: there is none.
static bool take(uint32_t *taken, uint32_t count, uint32_t room, uint32_t *first) {
    if (__atomic_load_n(taken, __ATOMIC_RELAXED) > room - count)
        return false;
    *first = __atomic_fetch_add(taken, count, __ATOMIC_RELAXED);
    return *first <= room - count;
}

// 0: there is no room.
static uint32_t add_site(uint32_t stack) {
    const uint64_t *pcs;
    uint32_t count = (uint32_t)stack_pcs(stack, &pcs), first, number;
    if (!count || !take(&sites->pc_count, count, LEDGER_SITE_PCS, &first) ||
        !take(&sites->count, 1, LEDGER_SITES, &number))
        return 0;
    struct ledger_site *site = &sites->sites[number];
    for (uint32_t i = 0; i < count; i++)
        sites->pcs[first + i] = pcs[i];
    site->first_pc = first;
    __atomic_store_n(&site->pc_count, count, __ATOMIC_RELEASE);
    return number;
}

// Whoever comes second leaves a place behind at which nothing ever happens.
static struct ledger_site *site_of(uint32_t stack) {
    uint32_t number = 0;
    for (uint32_t i = stack * 0x9e3779b1u % SLOTS; stack; i = (i + 1) % SLOTS) {
        uint64_t entry = atomic_load_explicit(&slots[i], memory_order_acquire);
        if (!entry) {
            if (!number && !(number = add_site(stack)))
                break;
            if (atomic_compare_exchange_strong(&slots[i], &entry, (uint64_t)number << 32 | stack))
                return &sites->sites[number];
        }
        if ((uint32_t)entry == stack)
            return &sites->sites[entry >> 32];
    }
    return &sites->sites[0];
}

static void add(struct ledger_site *site, enum site_value value, uint64_t amount) {
    __atomic_fetch_add(&site->values[value], amount, __ATOMIC_RELAXED);
}

void sites_made(uint32_t stack, size_t size) {
    struct ledger_site *site = site_of(stack);
    add(site, SITE_LIVE_BYTES, size);
    add(site, SITE_LIVE_BLOCKS, 1);
    add(site, SITE_BYTES, size);
    add(site, SITE_BLOCKS, 1);
}

void sites_freed(uint32_t made_at, uint32_t freed_at, size_t size) {
    struct ledger_site *site = site_of(made_at);
    add(site, SITE_LIVE_BYTES, -size);
    add(site, SITE_LIVE_BLOCKS, -1ul);
    if (sites_wanted != SITES_FULL)
        return;
    site = site_of(freed_at);
    add(site, SITE_FREED_BYTES, size);
    add(site, SITE_FREED_BLOCKS, 1);
}

void sites_resized(uint32_t made_at, size_t old_size, size_t size) {
    struct ledger_site *site = site_of(made_at);
    add(site, SITE_LIVE_BYTES, size - old_size);
    add(site, SITE_BYTES, size - old_size);
}
