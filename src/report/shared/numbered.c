#include "report/shared/numbered.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static uint32_t *find_slot(const struct numbered *numbered, const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3;
    for (hash ^= hash >> 29;; hash++) {
        uint32_t *slot = &numbered->slots[hash & (numbered->slot_count - 1)];
        if (!*slot || strcmp(numbered->list[*slot - 1], text) == 0)
            return slot;
    }
}

uint32_t numbered_text(struct numbered *numbered, const char *text, bool *is_new) {
    if (numbered->count + 1 > numbered->slot_count / 2) {
        numbered->slot_count = numbered->slot_count ? numbered->slot_count * 2 : 1024;
        free(numbered->slots);
        numbered->slots = base_allocate(numbered->slot_count * sizeof *numbered->slots);
        memset(numbered->slots, 0, numbered->slot_count * sizeof *numbered->slots);
        for (size_t i = 0; i < numbered->count; i++)
            *find_slot(numbered, numbered->list[i]) = (uint32_t)i + 1;
    }
    uint32_t *slot = find_slot(numbered, text);
    *is_new = !*slot;
    if (*slot)
        return *slot - 1;
    if (numbered->count == numbered->room) {
        numbered->room = numbered->room ? numbered->room * 2 : 256;
        numbered->list = base_reallocate(numbered->list, numbered->room * sizeof *numbered->list);
    }
    numbered->list[numbered->count++] = base_copy(text);
    *slot = (uint32_t)numbered->count;
    return *slot - 1;
}

void numbered_free(struct numbered *numbered) {
    for (size_t i = 0; i < numbered->count; i++)
        free(numbered->list[i]);
    free(numbered->list);
    free(numbered->slots);
}
