#include "symbols/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"

void range_list_add(struct range_list *list, uint64_t low, uint64_t high, uint32_t owner,
                    uint32_t depth) {
    if (low >= high)
        return;
    *vector_push(list->items, list->count) =
        (struct range){.low = low, .high = high, .owner = owner, .depth = depth};
}

void range_list_free(struct range_list *list) {
    free(list->items);
    *list = (struct range_list){0};
}

/* Outer before inner. */
static int compare(const void *left, const void *right) {
    const struct range *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    if (a->high != b->high)
        return a->high > b->high ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return a->owner < b->owner ? -1 : a->owner > b->owner;
}

static void step(struct ranges *ranges, uint64_t start, uint32_t owner) {
    size_t count = ranges->count;
    if (count && ranges->starts[count - 1] == start) {
        ranges->owners[count - 1] = owner;
        return;
    }
    if (count && ranges->owners[count - 1] == owner)
        return;
    ranges->starts[count] = start;
    ranges->owners[count] = owner;
    ranges->count++;
}

/*
 * A sweep from low to high. The stack holds the ranges around the current position, each reaching
 * no further than the one below it; a range makes at most two steps, one where it starts and one
 * where it ends.
 */
int ranges_build(struct ranges *ranges, struct range_list *list) {
    *ranges = (struct ranges){0};
    if (!list->count)
        return 0;
    qsort(list->items, list->count, sizeof *list->items, compare);
    const struct range **stack = malloc(list->count * sizeof *stack);
    ranges->starts = malloc(2 * list->count * sizeof *ranges->starts);
    ranges->owners = malloc(2 * list->count * sizeof *ranges->owners);
    if (!stack || !ranges->starts || !ranges->owners) {
        free(stack);
        ranges_free(ranges);
        return -1;
    }
    size_t depth = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct range *range = &list->items[i];
        while (depth && stack[depth - 1]->high < range->high) {
            uint64_t end = stack[--depth]->high;
            if (end < range->low)
                step(ranges, end, depth ? stack[depth - 1]->owner : RANGES_NONE);
        }
        step(ranges, range->low, range->owner);
        stack[depth++] = range;
    }
    while (depth) {
        uint64_t end = stack[--depth]->high;
        step(ranges, end, depth ? stack[depth - 1]->owner : RANGES_NONE);
    }
    free(stack);
    return 0;
}

void ranges_free(struct ranges *ranges) {
    free(ranges->starts);
    free(ranges->owners);
    *ranges = (struct ranges){0};
}

size_t ranges_bytes(const struct ranges *ranges) {
    return ranges->count * (sizeof *ranges->starts + sizeof *ranges->owners);
}

uint32_t ranges_find(const struct ranges *ranges, uint64_t address) {
    size_t behind = search_first(at, 0, ranges->count, ranges->starts[at] > address);
    return behind ? ranges->owners[behind - 1] : RANGES_NONE;
}
