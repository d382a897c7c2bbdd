#include "report/shared/named_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

enum { MOST_FRAMES = 64, BUCKETS = 4096 };

struct entry {
    struct entry *next;
    uint64_t address;
    size_t count;
    struct symbol_frame frames[];
};

struct named_cache {
    struct entry *buckets[BUCKETS];
};

struct named_cache *named_cache_new(void) {
    return base_allocate(sizeof(struct named_cache));
}

void named_cache_clear(struct named_cache *cache) {
    for (size_t i = 0; i < BUCKETS; i++) {
        while (cache->buckets[i]) {
            struct entry *entry = cache->buckets[i];
            cache->buckets[i] = entry->next;
            free(entry);
        }
    }
}

void named_cache_free(struct named_cache *cache) {
    if (cache)
        named_cache_clear(cache);
    free(cache);
}

static const struct entry *look_up(struct symbols *symbols, struct named_cache *cache, pid_t pid,
                                   uint64_t address) {
    struct entry **bucket = &cache->buckets[(address ^ address >> 12) % BUCKETS];
    for (struct entry *entry = *bucket; entry; entry = entry->next)
        if (entry->address == address)
            return entry;
    struct symbol_frame frames[MOST_FRAMES];
    size_t count = symbols_resolve(symbols, pid, address, false, frames, MOST_FRAMES);
    // Where no file is mapped, there is a frame all the same: one without a name.
    if (!count)
        frames[count++] = (struct symbol_frame){0};
    struct entry *entry = base_allocate(sizeof *entry + count * sizeof *frames);
    entry->address = address;
    entry->count = count;
    memcpy(entry->frames, frames, count * sizeof *frames);
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

struct named_stack named_stack_make(struct symbols *symbols, struct named_cache *cache,
                                    const struct stack *stack,
                                    const struct stack_text_options *options) {
    struct named_stack named = {0};
    size_t callers = options->callers ? options->callers : STACK_TEXT_DEFAULT_CALLERS;
    bool below_main = false;
    for (size_t i = 0; i < stack->count && i < callers; i++) {
        uint64_t address = stack->addresses[i] - (i || stack->first_is_return_address);
        const struct entry *entry = look_up(symbols, cache, stack->pid, address);
        for (size_t j = 0; j < entry->count; j++)
            *vector_push(named.frames, named.count) =
                (struct named_frame){.address = address, .symbol = entry->frames[j]};
        if (!below_main)
            named.shown = named.count;
        if (!options->show_below_main && stack_text_is_main(&entry->frames[entry->count - 1]))
            below_main = true;
    }
    return named;
}

void named_stack_free(struct named_stack *stack) {
    free(stack->frames);
    *stack = (struct named_stack){0};
}
