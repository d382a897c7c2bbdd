#include "tools/callgrind/target/owners.h"

#include <stdlib.h>

#include "base/hash.h"

struct entry {
    uint64_t pc; // 0: free
    uint32_t owner, expected;
};

enum { FIRST_ROOM = 1 << 12, SEVERAL = UINT32_MAX };

static struct entry *entries; // a hash table, at most half full
static uint64_t room, used;

static struct entry *slot_in(struct entry *table, uint64_t size, uint64_t pc) {
    uint64_t at = pc * HASH_FACTOR >> 20 & (size - 1);
    while (table[at].pc && table[at].pc != pc)
        at = (at + 1) & (size - 1);
    return &table[at];
}

static bool grow(void) {
    uint64_t size = room ? 2 * room : FIRST_ROOM;
    struct entry *grown = calloc(size, sizeof *grown);
    if (!grown)
        return false;
    for (uint64_t i = 0; i < room; i++)
        if (entries[i].pc)
            *slot_in(grown, size, entries[i].pc) = entries[i];
    free(entries);
    entries = grown;
    room = size;
    return true;
}

static const struct entry *look_up(uint64_t pc) {
    static const struct entry none;
    return room ? slot_in(entries, room, pc) : &none;
}

// NULL: there is no memory for more.
static struct entry *find_or_add(uint64_t pc) {
    if (2 * used >= room && !grow())
        return NULL;
    struct entry *entry = slot_in(entries, room, pc);
    used += !entry->pc;
    entry->pc = pc;
    return entry;
}

uint32_t owner_at(uint64_t pc) {
    return look_up(pc)->owner;
}

uint32_t owner_claim(uint64_t pc, uint32_t function) {
    struct entry *entry = find_or_add(pc);
    if (!entry)
        return function;
    if (!entry->owner)
        entry->owner = function;
    return entry->owner;
}

void owner_expect(uint64_t pc, uint32_t function) {
    struct entry *entry = find_or_add(pc);
    if (!entry || entry->owner == function)
        return;
    entry->expected =
        !entry->expected || entry->expected == function ? function : (uint32_t)SEVERAL;
}

uint32_t owner_expected(uint64_t pc) {
    uint32_t expected = look_up(pc)->expected;
    return expected == SEVERAL ? 0 : expected;
}

bool owner_is_doubtful(uint64_t pc) {
    const struct entry *entry = look_up(pc);
    return entry->expected && entry->expected != entry->owner;
}
