#include "profile/heap/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_ROOM  256
#define FIRST_SLOTS 1024

// ---- classes ----

static uint32_t hash_of(uint32_t stack, uint64_t size) {
    uint64_t hash = (size + stack * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
    return (uint32_t)((hash ^ hash >> 32) * 0xd6e8feb86659fd93 >> 32);
}

static inline struct classes_slot *slot_of(const struct classes *classes, uint32_t stack,
                                           uint64_t size, uint32_t hash) {
    for (uint32_t at = hash;; at++) {
        struct classes_slot *slot = &classes->slots[at & (classes->slot_count - 1)];
        if (!slot->class)
            return slot;
        const struct classes_class *class = &classes->list[slot->class];
        if (slot->hash == hash && class->stack == stack && class->size == size)
            return slot;
    }
}

static void fill_slot(struct classes *classes, uint32_t number) {
    const struct classes_class *class = &classes->list[number];
    uint32_t hash = hash_of(class->stack, class->size);
    *slot_of(classes, class->stack, class->size, hash) = (struct classes_slot){hash, number};
}

static void rebuild_slots(struct classes *classes, uint32_t slot_count) {
    free(classes->slots);
    classes->slot_count = slot_count;
    classes->slots = base_allocate(slot_count * sizeof *classes->slots);
    memset(classes->slots, 0, slot_count * sizeof *classes->slots);
    for (uint32_t i = 1; i <= classes->count; i++)
        fill_slot(classes, i);
}

uint32_t classes_find(const struct classes *classes, uint32_t stack, uint64_t size) {
    if (stack >= classes->stack_count)
        return 0;
    uint32_t class = slot_of(classes, stack, size, hash_of(stack, size))->class;
    return class ? class : classes->stacks[stack].loose;
}

static struct classes_stack *stack_of(struct classes *classes, uint32_t stack) {
    classes->stacks =
        base_reach(classes->stacks, &classes->stack_count, stack, sizeof *classes->stacks);
    return &classes->stacks[stack];
}

uint32_t classes_add(struct classes *classes, uint32_t stack, uint64_t size) {
    if (classes->count + 1 >= classes->room) {
        classes->room = classes->room ? classes->room * 2 : FIRST_ROOM;
        classes->list = base_reallocate(classes->list, classes->room * sizeof *classes->list);
    }
    if (classes->count + 1 > classes->slot_count / 2)
        rebuild_slots(classes, classes->slot_count ? classes->slot_count * 2 : FIRST_SLOTS);
    struct classes_stack *of = stack_of(classes, stack);
    uint32_t number = ++classes->count;
    if (of->count == CLASSES_OF_STACK) {
        size = CLASSES_LOOSE;
        of->loose = number;
    } else {
        of->count++;
    }
    classes->list[number] = (struct classes_class){.stack = stack, .size = size};
    fill_slot(classes, number);
    return number;
}

// ---- groups ----

uint32_t classes_new_group(struct classes *classes) {
    if (classes->group_count + 1 >= classes->group_room) {
        classes->group_room = classes->group_room ? classes->group_room * 2 : FIRST_ROOM;
        classes->groups =
            base_reallocate(classes->groups, classes->group_room * sizeof *classes->groups);
        classes->links =
            base_reallocate(classes->links, classes->group_room * sizeof *classes->links);
    }
    return ++classes->group_count;
}

uint32_t classes_step(const struct classes *classes, uint32_t group) {
    const struct classes_link *links = classes->links;
    uint32_t older = classes->list[classes->groups[group].class].cursor, newer = older;
    if (group == older)
        return 0;
    for (uint32_t step = 1; step < CLASSES_STEP_MAX; step += 2) {
        older = links[older].older;
        if (group == older)
            return step;
        newer = links[newer].newer;
        if (group == newer)
            return step + 1;
    }
    return CLASSES_STEP_MAX + 1;
}

bool classes_has(const struct classes *classes, uint64_t group) {
    return group && group <= classes->group_count && classes->groups[group].count;
}

void classes_free(struct classes *classes) {
    free(classes->list);
    free(classes->slots);
    free(classes->stacks);
    free(classes->groups);
    free(classes->links);
    *classes = (struct classes){0};
}

void classes_check(const struct classes *classes) {
    uint32_t in_use = 0, unused = 0, seen = 0;
    for (uint32_t i = 1; i <= classes->group_count; i++)
        in_use += classes->groups[i].count != 0;
    for (uint32_t i = classes->unused; i; i = classes->links[i].newer)
        unused++;
    for (uint32_t i = 1; i <= classes->count; i++) {
        const struct classes_class *class = &classes->list[i];
        if (slot_of(classes, class->stack, class->size, hash_of(class->stack, class->size))->class
                != i ||
            !class->newest != !class->cursor)
            abort();
        bool has_cursor = !class->newest;
        for (uint32_t group = class->newest, first = 1; class->newest; first = 0) {
            const struct classes_group *one = &classes->groups[group];
            if ((group == class->newest && !first) || seen > classes->group_count)
                break;
            uint32_t older = classes->links[group].older;
            if (one->class != i || !one->count || classes->links[older].newer != group)
                abort();
            has_cursor |= group == class->cursor;
            seen++;
            group = older;
        }
        if (!has_cursor)
            abort();
    }
    if (seen != in_use || in_use + unused != classes->group_count)
        abort();
}
