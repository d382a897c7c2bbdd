#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vector.h"

enum { FIRST_SLOTS = 64 };

static void fill_slot(struct map *map, uint32_t hash, uint32_t entry) {
    uint32_t at = hash;
    while (map->slots[at & (map->slot_count - 1)].entry)
        at++;
    map->slots[at & (map->slot_count - 1)] = (struct map_slot){hash, entry};
}

static void grow(struct map *map) {
    struct map old = *map;
    map->slot_count = old.slot_count ? old.slot_count * 2 : FIRST_SLOTS;
    map->slots = base_allocate(map->slot_count * sizeof *map->slots);
    for (uint32_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].entry)
            fill_slot(map, old.slots[i].hash, old.slots[i].entry);
    free(old.slots);
}

uint32_t map_add(struct map *map, uint64_t hash) {
    if (map->count + 1 > map->slot_count / 2)
        grow(map);
    fill_slot(map, (uint32_t)hash, ++map->count);
    return map->count - 1;
}

void map_clear(struct map *map) {
    if (map->count)
        memset(map->slots, 0, map->slot_count * sizeof *map->slots);
    map->count = 0;
}

void map_free(struct map *map) {
    free(map->slots);
    *map = (struct map){0};
}

size_t map_bytes(const struct map *map) {
    return map->slot_count * sizeof *map->slots;
}

void map_check(const struct map *map) {
    uint32_t used = 0;
    if (map->slot_count & (map->slot_count - 1) || map->count > map->slot_count / 2)
        abort();
    for (uint32_t i = 0; i < map->slot_count; i++) {
        const struct map_slot *slot = &map->slots[i];
        if (!slot->entry)
            continue;
        used++;
        if (slot->entry > map->count)
            abort();
        // A walk from its hash comes by.
        struct map_walk walk = map_walk(slot->hash);
        uint32_t entry;
        while ((entry = map_next(map, &walk)) != slot->entry - 1)
            if (entry == MAP_NONE)
                abort();
    }
    if (used != map->count)
        abort();
}

// ---- integers ----

uint32_t map_integers_find(const struct map_integers *map, uint64_t key) {
    struct map_walk walk = map_walk(hash_integer(key));
    uint32_t entry;
    while ((entry = map_next(&map->map, &walk)) != MAP_NONE && map->keys[entry] != key)
        ;
    return entry;
}

uint32_t map_integers_add(struct map_integers *map, uint64_t key, bool *is_new) {
    uint32_t entry = map_integers_find(map, key);
    *is_new = entry == MAP_NONE;
    if (!*is_new)
        return entry;
    *vector_push(map->keys, map->count) = key;
    return map_add(&map->map, hash_integer(key));
}

void map_integers_clear(struct map_integers *map) {
    map_clear(&map->map);
    map->count = 0;
}

void map_integers_free(struct map_integers *map) {
    map_free(&map->map);
    free(map->keys);
    *map = (struct map_integers){0};
}

// ---- texts ----

static uint32_t find_text(const struct map_texts *map, uint64_t hash, const char *bytes,
                          size_t size) {
    struct map_walk walk = map_walk(hash);
    for (uint32_t entry; (entry = map_next(&map->map, &walk)) != MAP_NONE;)
        if (map->keys[entry].size == size && memcmp(map->keys[entry].bytes, bytes, size) == 0)
            return entry;
    return MAP_NONE;
}

uint32_t map_texts_find(const struct map_texts *map, const char *bytes, size_t size) {
    return find_text(map, hash_words(bytes, size), bytes, size);
}

uint32_t map_texts_add(struct map_texts *map, const char *bytes, size_t size, bool *is_new) {
    uint64_t hash = hash_words(bytes, size);
    uint32_t entry = find_text(map, hash, bytes, size);
    *is_new = entry == MAP_NONE;
    if (!*is_new)
        return entry;
    char *copy = base_allocate(size + 1);
    memcpy(copy, bytes, size);
    *vector_push(map->keys, map->count) = (struct map_text){copy, size};
    return map_add(&map->map, hash);
}

void map_texts_free(struct map_texts *map) {
    for (uint32_t i = 0; i < map->count; i++)
        free(map->keys[i].bytes);
    free(map->keys);
    map_free(&map->map);
    *map = (struct map_texts){0};
}
