#include "engine/cache/version.h"

#include <string.h>

#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"

enum { BUCKETS = 1024, EVERYTHING = 1 };

static struct version versions[VERSIONS_MOST] = {
    [EVERYTHING] = {.units = ~0ul}, [EVERYTHING + 1] = {.units = ~0ul, .forced = true}};
enum { FIRST = EVERYTHING + 2 };
static unsigned count = FIRST;
bool versions_full;
static uint16_t buckets[BUCKETS], next[VERSIONS_MOST];

static unsigned bucket_of(uint64_t units, bool forced) {
    return ((units + forced) * 0x9e3779b97f4a7c15ull) >> 54;
}

unsigned version_number(uint64_t units, bool forced) {
    if (!units && !forced)
        return 0;
    if (units == ~0ul)
        return EVERYTHING + forced;
    unsigned bucket = bucket_of(units, forced);
    for (unsigned i = buckets[bucket]; i; i = next[i])
        if (versions[i].units == units && versions[i].forced == forced)
            return i;
    if (count == VERSIONS_MOST) {
        versions_full = true;
        return EVERYTHING + forced;
    }
    versions[count] = (struct version){units, forced};
    next[count] = buckets[bucket];
    buckets[bucket] = count;
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

unsigned version_of_thread(bool forced) {
    if (!tool->shadows)
        return 0;
    uint64_t words[TOOL_UNITS / 8], any = 0, units = 0;
    memcpy(words, self->tool_memory, sizeof words);
    for (unsigned i = 0; i < TOOL_UNITS / 8; i++)
        any |= words[i];
    if (!any && !forced)
        return 0;
    for (unsigned i = 0; i < TOOL_UNITS; i++)
        if (self->tool_memory[i])
            units |= 1ul << i;
    cache_lock();
    unsigned number = version_number(units, forced);
    cache_unlock();
    return number;
}
