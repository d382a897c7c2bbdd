/*
 * ranges: finds the innermost of many address ranges, nested or not, at an address.
 *
 * The structure is built once; each look-up is a binary search. A range that starts later, or that
 * starts together with a longer one, lies inside the other. Where two ranges overlap without
 * nesting, the later start wins and the earlier range ends there. So damaged input costs neither
 * time nor memory. Supervisor only.
 */
#ifndef QUERN_SYMBOLS_RANGES_H
#define QUERN_SYMBOLS_RANGES_H

#include <stddef.h>
#include <stdint.h>

#define RANGES_NONE UINT32_MAX

struct range {
    uint64_t low, high; /* [low, high) */
    uint32_t owner;     /* the answer for addresses in it */
    uint32_t depth;     /* decides between equal ranges: the deeper is the inner one */
};

/* A growing list of ranges to build from. Zero-initialised is empty. */
struct range_list {
    struct range *items;
    size_t count;
};

/* Disjoint steps: step i reaches from start[i] to start[i + 1]. */
struct ranges {
    uint64_t *starts;
    uint32_t *owners; /* RANGES_NONE for a hole */
    size_t count;
};

/* Empty ranges are left out. */
void range_list_add(struct range_list *list, uint64_t low, uint64_t high, uint32_t owner,
                    uint32_t depth);
void range_list_free(struct range_list *list);

/* Sorts the list. 0, or -1 if memory is out. */
int ranges_build(struct ranges *ranges, struct range_list *list);
void ranges_free(struct ranges *ranges);
size_t ranges_bytes(const struct ranges *ranges);

/* The owner at address, or RANGES_NONE. */
uint32_t ranges_find(const struct ranges *ranges, uint64_t address);

#endif
