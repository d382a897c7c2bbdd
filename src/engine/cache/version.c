#include "engine/cache/version.h"

#include <string.h>

#include "base/hash.h"
#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"

// Some of this is called by generated code that has not saved vector registers.
#pragma GCC target("general-regs-only")

enum { BUCKETS = 1024, EVERYTHING = 1 };

static struct version versions[VERSIONS_MOST] = {
    [EVERYTHING] = {.units = ~0ul}, [EVERYTHING + 1] = {.units = ~0ul, .forced = true}};
enum { FIRST = EVERYTHING + 2 };
static unsigned count = FIRST;
bool versions_full;
static uint16_t buckets[BUCKETS], next[VERSIONS_MOST];

static unsigned bucket_of(uint64_t units, bool forced) {
    return hash_bucket(units + forced, 10);
}

unsigned version_find(uint64_t units, bool forced) {
    if (!units && !forced)
        return 0;
    if (units == ~0ul)
        return EVERYTHING + forced;
    unsigned i = __atomic_load_n(&buckets[bucket_of(units, forced)], __ATOMIC_ACQUIRE);
    while (i && (versions[i].units != units || versions[i].forced != forced))
        i = next[i];
    return i ? i : NO_VERSION;
}

unsigned version_number(uint64_t units, bool forced) {
    unsigned number = version_find(units, forced);
    if (number != NO_VERSION)
        return number;
    if (count == VERSIONS_MOST) {
        versions_full = true;
        return EVERYTHING + forced;
    }
    unsigned bucket = bucket_of(units, forced);
    versions[count] = (struct version){units, forced};
    next[count] = buckets[bucket];
    __atomic_store_n(&buckets[bucket], count, __ATOMIC_RELEASE);
    return count++;
}

void versions_reset(void) {
    memset(buckets, 0, sizeof buckets);
    count = FIRST;
    versions_full = false;
}

struct version version_get(unsigned number) {
    return versions[number];
}

static uint64_t undefined_units(unsigned first, unsigned last) {
    uint64_t units = 0, word;
    for (unsigned group = first / 8; group < last / 8; group++) {
        memcpy(&word, self->tool_memory + 8 * group, sizeof word);
        for (; word; word &= word - 1)
            units |= 1ul << (8 * group + __builtin_ctzl(word) / 8);
    }
    return units;
}

uint64_t version_hidden_units(void) {
    return undefined_units(TOOL_UNIT_X87 & ~7u, TOOL_UNITS) & HIDDEN_UNITS;
}

unsigned version_of_thread(bool forced, uint64_t more) {
    if (!tool->shadows)
        return 0;
    uint64_t units = (undefined_units(0, TOOL_UNITS) & ~HIDDEN_UNITS) | more;
    if (!units && !forced)
        return 0;
    cache_lock();
    unsigned number = version_number(units, forced);
    cache_unlock();
    return number;
}
