#include "profile/heap/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_ROOM 1024

static struct blocks_slot *slot_of(const struct blocks *blocks, uint64_t key) {
    size_t at = blocks_home(blocks, key);
    while (blocks->slots[at].key && blocks->slots[at].key != key)
        at = (at + 1) & (blocks->room - 1);
    return &blocks->slots[at];
}

static void grow(struct blocks *blocks) {
    struct blocks old = *blocks;
    blocks->room = old.room ? old.room * 2 : FIRST_ROOM;
    blocks->slots = base_allocate(blocks->room * sizeof *blocks->slots);
    memset(blocks->slots, 0, blocks->room * sizeof *blocks->slots);
    for (size_t i = 0; i < old.room; i++)
        if (old.slots[i].key)
            *slot_of(blocks, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

struct heap_block *blocks_find(struct blocks *blocks, uint64_t key) {
    if (!blocks->room)
        return NULL;
    struct blocks_slot *slot = slot_of(blocks, key);
    return slot->key ? &slot->block : NULL;
}

struct heap_block *blocks_insert(struct blocks *blocks, uint64_t key) {
    if (blocks->count + 1 > blocks->room / 4 * 3)
        grow(blocks);
    struct blocks_slot *slot = slot_of(blocks, key);
    *slot = (struct blocks_slot){.key = key};
    blocks->count++;
    return &slot->block;
}

struct heap_block *blocks_add(struct blocks *blocks, uint64_t key) {
    if (blocks->count + 1 > blocks->room / 4 * 3)
        grow(blocks);
    struct blocks_slot *slot = slot_of(blocks, key);
    if (slot->key)
        return NULL;
    slot->key = key;
    blocks->count++;
    return &slot->block;
}

// Moves later entries up instead of leaving a mark: tables that churn stay as fast as fresh ones.
bool blocks_remove(struct blocks *blocks, uint64_t key, struct heap_block *block) {
    if (!blocks->room)
        return false;
    struct blocks_slot *slot = slot_of(blocks, key);
    if (!slot->key)
        return false;
    *block = slot->block;
    size_t mask = blocks->room - 1;
    size_t hole = (size_t)(slot - blocks->slots);
    for (size_t at = (hole + 1) & mask; blocks->slots[at].key; at = (at + 1) & mask) {
        size_t home = blocks_home(blocks, blocks->slots[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            blocks->slots[hole] = blocks->slots[at];
            hole = at;
        }
    }
    blocks->slots[hole].key = 0;
    blocks->count--;
    return true;
}

void blocks_free(struct blocks *blocks) {
    free(blocks->slots);
    *blocks = (struct blocks){0};
}

void blocks_check(const struct blocks *blocks) {
    size_t count = 0;
    for (size_t i = 0; i < blocks->room; i++) {
        if (!blocks->slots[i].key)
            continue;
        count++;
        if (slot_of(blocks, blocks->slots[i].key) != &blocks->slots[i])
            abort();
    }
    if (count != blocks->count || count > blocks->room / 4 * 3)
        abort();
}
