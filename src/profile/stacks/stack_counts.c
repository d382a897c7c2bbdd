#include "profile/stacks/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vector.h"

static uint64_t hash_stack(uint32_t key, const uint64_t *addresses, size_t size, bool broken) {
    uint64_t hash = key * 2ull + broken;
    for (size_t i = 0; i < size; i++)
        hash = hash_add(hash, addresses[i]);
    return hash;
}

static uint32_t find_stack(const struct stack_counts *counts, uint64_t hash,
                           const struct stack_count *wanted, const uint64_t *addresses) {
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&counts->map, &walk)) != MAP_NONE;) {
        const struct stack_count *entry = &counts->entries[number];
        if (entry->key == wanted->key && entry->size == wanted->size &&
            entry->broken == wanted->broken &&
            (!wanted->size || memcmp(&counts->addresses[entry->first], addresses,
                                     wanted->size * sizeof *addresses) == 0))
            return number;
    }
    return MAP_NONE;
}

void stack_counts_add(struct stack_counts *counts, uint32_t key, const uint64_t *addresses,
                      size_t size, bool broken, uint64_t value) {
    uint64_t hash = hash_stack(key, addresses, size, broken);
    struct stack_count entry = {
        .first = counts->address_count, .size = (uint32_t)size, .key = key, .broken = broken};
    uint32_t number = find_stack(counts, hash, &entry, addresses);
    if (number == MAP_NONE) {
        uint64_t *kept = vector_extend(counts->addresses, counts->address_count, size);
        if (size)
            memcpy(kept, addresses, size * sizeof *addresses);
        *vector_push(counts->entries, counts->count) = entry;
        number = map_add(&counts->map, hash);
    }
    counts->entries[number].value += value;
}

size_t stack_counts_bytes(const struct stack_counts *counts) {
    return vector_room(counts->count) * sizeof *counts->entries +
           vector_room(counts->address_count) * sizeof *counts->addresses + map_bytes(&counts->map);
}

void stack_counts_clear(struct stack_counts *counts) {
    free(counts->entries);
    free(counts->addresses);
    map_free(&counts->map);
    *counts = (struct stack_counts){0};
}
