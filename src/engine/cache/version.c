#include "engine/cache/version.h"

#include <string.h>

#include "base/hash.h"

// Some of this is called by generated code that has not saved vector registers.
#pragma GCC target("general-regs-only")

enum { BUCKETS = 1024, EVERYTHING = 1 };

static struct tool_version versions[VERSIONS_MOST] = {
    [EVERYTHING] = {.set = ~0ul}, [EVERYTHING + 1] = {.set = ~0ul, .forced = true}};
enum { FIRST = EVERYTHING + 2 };
static unsigned count = FIRST;
bool versions_full;
static uint16_t buckets[BUCKETS], next[VERSIONS_MOST];

static unsigned bucket_of(uint64_t set, bool forced) {
    return hash_bucket(set + forced, 10);
}

unsigned version_find(uint64_t set, bool forced) {
    if (!set && !forced)
        return 0;
    if (set == ~0ul)
        return EVERYTHING + forced;
    unsigned i = __atomic_load_n(&buckets[bucket_of(set, forced)], __ATOMIC_ACQUIRE);
    while (i && (versions[i].set != set || versions[i].forced != forced))
        i = next[i];
    return i ? i : NO_VERSION;
}

unsigned version_number(uint64_t set, bool forced) {
    unsigned number = version_find(set, forced);
    if (number != NO_VERSION)
        return number;
    if (count == VERSIONS_MOST) {
        versions_full = true;
        return EVERYTHING + forced;
    }
    unsigned bucket = bucket_of(set, forced);
    versions[count] = (struct tool_version){set, forced};
    next[count] = buckets[bucket];
    __atomic_store_n(&buckets[bucket], count, __ATOMIC_RELEASE);
    return count++;
}

void versions_reset(void) {
    memset(buckets, 0, sizeof buckets);
    count = FIRST;
    versions_full = false;
}

struct tool_version version_get(unsigned number) {
    return versions[number];
}
