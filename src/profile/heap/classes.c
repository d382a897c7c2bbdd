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

// Walks from the cursor both ways. CLASSES_STEP_MAX + 1: it is farther away than `most`.
static uint32_t walk_to(const struct classes_link *links, uint32_t cursor, uint32_t group,
                        uint32_t most) {
    uint32_t older = cursor, newer = cursor;
    if (group == cursor)
        return 0;
    for (uint32_t step = 1; step < most; step += 2) {
        older = links[older].older;
        if (group == older)
            return step;
        newer = links[newer].newer;
        if (group == newer)
            return step + 1;
    }
    return CLASSES_STEP_MAX + 1;
}

// Where blocks are released in no order, almost every walk is in vain. After a few of these, walks
// are short, but for one now and then, which finds out whether there is an order again.
enum { VAIN_MOST = 8, VAIN_TURN = 32, SHORT_WALK = 6 };

uint32_t classes_step(struct classes *classes, uint32_t group) {
    struct classes_class *class = &classes->list[classes->groups[group].class];
    bool is_short = class->vain >= VAIN_MOST && class->vain < VAIN_TURN;
    uint32_t step =
        walk_to(classes->links, class->cursor, group, is_short ? SHORT_WALK : CLASSES_STEP_MAX);
    if (step > CLASSES_STEP_MAX)
        class->vain = class->vain < VAIN_TURN ? class->vain + 1 : VAIN_MOST;
    else if (!is_short)
        class->vain = 0;
    return step;
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
