#include "profile/stacks/stack_counts.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_SLOTS 1024

static uint64_t hash_stack(uint32_t key, const uint64_t *addresses, size_t size, bool broken) {
    uint64_t hash = key * 2ull + broken;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ addresses[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return hash;
}

static uint32_t *find_slot(const struct stack_counts *counts, const struct stack_count *wanted,
                           const uint64_t *addresses) {
    for (size_t at = wanted->hash;; at++) {
        uint32_t *slot = &counts->slots[at & (counts->slot_count - 1)];
        if (!*slot)
            return slot;
        const struct stack_count *entry = &counts->entries[*slot - 1];
        if (entry->hash == wanted->hash && entry->key == wanted->key &&
            entry->size == wanted->size && entry->broken == wanted->broken &&
            memcmp(&counts->addresses[entry->first], addresses, wanted->size * sizeof *addresses) ==
                0)
            return slot;
    }
}

static void grow_slots(struct stack_counts *counts) {
    free(counts->slots);
    counts->slot_count = counts->slot_count ? counts->slot_count * 2 : FIRST_SLOTS;
    counts->slots = base_allocate(counts->slot_count * sizeof *counts->slots);
    memset(counts->slots, 0, counts->slot_count * sizeof *counts->slots);
    for (size_t i = 0; i < counts->count; i++) {
        const struct stack_count *entry = &counts->entries[i];
        *find_slot(counts, entry, &counts->addresses[entry->first]) = (uint32_t)i + 1;
    }
}

static void keep_addresses(struct stack_counts *counts, const uint64_t *addresses, size_t size) {
    size_t needed = counts->address_count + size;
    if (needed > counts->address_room) {
        counts->address_room = needed * 2;
        counts->addresses =
            base_reallocate(counts->addresses, counts->address_room * sizeof *counts->addresses);
    }
    memcpy(&counts->addresses[counts->address_count], addresses, size * sizeof *addresses);
    counts->address_count = needed;
}

void stack_counts_add(struct stack_counts *counts, uint32_t key, const uint64_t *addresses,
                      size_t size, bool broken, uint64_t value) {
    if (counts->count + 1 > counts->slot_count / 4 * 3)
        grow_slots(counts);
    struct stack_count entry = {.hash = hash_stack(key, addresses, size, broken),
                                .first = counts->address_count,
                                .size = (uint32_t)size,
                                .key = key,
                                .broken = broken};
    uint32_t *slot = find_slot(counts, &entry, addresses);
    if (!*slot) {
        keep_addresses(counts, addresses, size);
        if (counts->count == counts->room) {
            counts->room = counts->room ? counts->room * 2 : 256;
            counts->entries =
                base_reallocate(counts->entries, counts->room * sizeof *counts->entries);
        }
        counts->entries[counts->count++] = entry;
        *slot = (uint32_t)counts->count;
    }
    counts->entries[*slot - 1].value += value;
}

size_t stack_counts_bytes(const struct stack_counts *counts) {
    return counts->room * sizeof *counts->entries +
           counts->address_room * sizeof *counts->addresses +
           counts->slot_count * sizeof *counts->slots;
}

void stack_counts_clear(struct stack_counts *counts) {
    free(counts->entries);
    free(counts->addresses);
    free(counts->slots);
    *counts = (struct stack_counts){0};
}
