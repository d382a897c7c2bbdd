#include "tools/flame/supervisor/moments.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/vector.h"

enum { MOMENTS_MAX = 1 << 20 };
#define STEP_NS 100000000

void moments_free(struct moments *moments) {
    free(moments->list);
    map_free(&moments->map);
    *moments = (struct moments){0};
}

uint64_t moments_add(struct moments *moments, uint64_t address, uint64_t time) {
    uint64_t hash = hash_add(hash_add(0, address), time / STEP_NS);
    struct map_walk walk = map_walk(hash);
    for (uint32_t i; (i = map_next(&moments->map, &walk)) != MAP_NONE;)
        if (moments->list[i].address == address &&
            moments->list[i].time / STEP_NS == time / STEP_NS)
            return MOMENTS_START + i;
    if (moments->count >= MOMENTS_MAX)
        return address;
    *vector_push(moments->list, moments->count) = (struct moment){address, time};
    return MOMENTS_START + map_add(&moments->map, hash);
}

bool moments_find(const struct moments *moments, uint64_t number, struct moment *moment) {
    if (number < MOMENTS_START || number - MOMENTS_START >= moments->count)
        return false;
    *moment = moments->list[number - MOMENTS_START];
    return true;
}
