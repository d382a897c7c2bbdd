#include "profile/heap/classes.h"

#include <stdlib.h>

#include "base/text.h"

// ---- classes ----

// Classes count from 1, so that what is not found (MAP_NONE) becomes 0.
static uint32_t find_class(const struct classes *classes, uint32_t stack, uint64_t size) {
    struct kind kind = {.size = size, .stack = stack};
    return kinds_find(&classes->map, classes->list + 1, sizeof *classes->list, &kind) + 1;
}

uint32_t classes_find(const struct classes *classes, uint32_t stack, uint64_t size) {
    if (stack >= classes->stack_count)
        return 0;
    uint32_t class = find_class(classes, stack, size);
    return class ? class : classes->stacks[stack].loose;
}

static struct classes_stack *stack_of(struct classes *classes, uint32_t stack) {
    classes->stacks =
        base_reach(classes->stacks, &classes->stack_count, stack, sizeof *classes->stacks);
    return &classes->stacks[stack];
}

uint32_t classes_add(struct classes *classes, uint32_t stack, uint64_t size) {
    struct classes_stack *of = stack_of(classes, stack);
    uint32_t number = ++classes->count;
    if (of->count == CLASSES_OF_STACK) {
        size = CLASSES_LOOSE;
        of->loose = number;
    } else {
        of->count++;
    }
    classes->list = base_reach(classes->list, &classes->room, number, sizeof *classes->list);
    classes->list[number] = (struct classes_class){.kind = {.size = size, .stack = stack}};
    kinds_add(&classes->map, &classes->list[number].kind);
    return number;
}

// ---- groups ----

uint32_t classes_new_group(struct classes *classes) {
    uint32_t group = ++classes->group_count;
    classes->groups =
        base_reach(classes->groups, &classes->group_room, group, sizeof *classes->groups);
    classes->links = base_reach(classes->links, &classes->link_room, group, sizeof *classes->links);
    return group;
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
    map_free(&classes->map);
    free(classes->stacks);
    free(classes->groups);
    free(classes->links);
    *classes = (struct classes){0};
}

void classes_check(const struct classes *classes) {
    uint32_t in_use = 0, unused = 0, seen = 0;
    if (classes->count)
        kinds_check(&classes->map, classes->list + 1, sizeof *classes->list, classes->count);
    for (uint32_t i = 1; i <= classes->group_count; i++)
        in_use += classes->groups[i].count != 0;
    for (uint32_t i = classes->unused; i; i = classes->links[i].newer)
        unused++;
    for (uint32_t i = 1; i <= classes->count; i++) {
        const struct classes_class *class = &classes->list[i];
        if (!class->newest != !class->cursor)
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
