// Groups the similar blocks of a recording. The writer and the reader keep the same tables, so that
// a few bits name a block.
//
// Words:
//   class    the live blocks of one stack and size. Numbered from 1 on in the order of first use
//   loose    a class that takes blocks of all further sizes of a stack with many classes, so that
//            tables stay small when sizes are almost random
//   group    blocks of a class that one thread allocated within one step of recorded time, and that
//            have one size; or a single block that was resized. The blocks of a group differ only
//            in their numbers, so the file never says which of them is meant
//   ring     the groups of a class by age, each linked to the next older and the next newer one;
//            beyond the oldest comes the newest
//   cursor   the group of a class that a block left last, or the next older one if that is empty
//   step     the distance from the cursor to another group of the ring: 0 is the cursor itself,
//            2n - 1 the nth older, 2n the nth newer one
//
// Programs release blocks of one kind in the order in which they allocated them, or in the reverse
// order, or close to it: most steps are small, and equal to the one before.
//
// Invariants: a group in a ring has blocks; new blocks join the newest group of a class. Numbers of
// classes and groups depend only on the calls. Supervisor context.
#ifndef QUERN_PROFILE_CLASSES_H
#define QUERN_PROFILE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/heap/kinds.h"

#define CLASSES_STEP_MAX 126
#define CLASSES_OF_STACK 64 // maximum of classes that are not loose
#define CLASSES_LOOSE    UINT64_MAX

struct classes_class {
    struct kind kind;        // of any thread; the size is CLASSES_LOOSE if it may be any
    uint32_t newest, cursor; // groups; 0: there are none
    uint8_t vain;            // the writer's: walks that found nothing, lately
};

// What the blocks of a group have in common.
struct classes_blocks {
    uint64_t size, time;
    uint32_t thread;
};

struct classes_group {
    struct classes_blocks like;
    bool alone; // nothing else joins
    uint32_t class;
    uint32_t count;
    uint32_t first, last; // the owner's own: 0 in a new group
};

// The neighbours of a group in its ring; for an unused group, `newer` is the next unused one. They
// are separate from the groups because walks along a ring read only these.
struct classes_link {
    uint32_t older, newer;
};

struct classes {
    struct classes_class *list; // [0] is not used
    uint32_t count;
    size_t room;
    struct map map; // of the list from [1] on
    struct classes_stack {
        uint32_t count; // of its classes that are not loose
        uint32_t loose; // 0: none yet
    } * stacks;
    size_t stack_count;
    struct classes_group *groups; // [0] is not used
    struct classes_link *links;   // by group
    uint32_t group_count;
    size_t group_room, link_room;
    uint32_t unused; // the first group that is not in use
};

// The class for a stack and size, which may be loose; 0: none yet.
uint32_t classes_find(const struct classes *classes, uint32_t stack, uint64_t size);
// Makes a class after classes_find has found none; a loose one if the stack has enough others.
uint32_t classes_add(struct classes *classes, uint32_t stack, uint64_t size);
static inline bool classes_is_loose(const struct classes *classes, uint32_t class) {
    return classes->list[class].kind.size == CLASSES_LOOSE;
}

// Makes a group with a new number.
uint32_t classes_new_group(struct classes *classes);

// Adds a block and returns its group.
static inline uint32_t classes_enter(struct classes *classes, uint32_t number,
                                     const struct classes_blocks *like, bool alone) {
    struct classes_class *class = &classes->list[number];
    struct classes_group *group = &classes->groups[class->newest];
    if (class->newest && !alone && !group->alone && group->like.time == like->time &&
        group->like.thread == like->thread && group->like.size == like->size) {
        group->count++;
        return class->newest;
    }
    uint32_t added = classes->unused;
    if (added)
        classes->unused = classes->links[added].newer;
    else
        added = classes_new_group(classes);
    classes->groups[added] =
        (struct classes_group){.like = *like, .alone = alone, .class = number, .count = 1};
    struct classes_link *links = classes->links;
    uint32_t newest = class->newest;
    if (newest) {
        links[added] = (struct classes_link){.older = newest, .newer = links[newest].newer};
        links[links[newest].newer].older = added;
        links[newest].newer = added;
    } else {
        links[added] = (struct classes_link){added, added};
        class->cursor = added;
    }
    class->newest = added;
    return added;
}

// Removes a block. The group may not exist afterwards.
static inline void classes_leave(struct classes *classes, uint32_t number) {
    struct classes_group *group = &classes->groups[number];
    struct classes_class *class = &classes->list[group->class];
    class->cursor = number;
    if (--group->count)
        return;
    struct classes_link *links = classes->links, *link = &links[number];
    if (link->older == number) {
        class->cursor = class->newest = 0;
    } else {
        class->cursor = link->older;
        if (class->newest == number)
            class->newest = link->older;
        links[link->older].newer = link->newer;
        links[link->newer].older = link->older;
    }
    link->newer = classes->unused;
    classes->unused = number;
}

// The step to a group; CLASSES_STEP_MAX + 1 if it is further away, or was not looked for so far. For
// the writer, which then names the group itself.
uint32_t classes_step(struct classes *classes, uint32_t group);
// The group at a step in a class; 0: the class has none.
static inline uint32_t classes_at(const struct classes *classes, uint32_t class, uint32_t step) {
    const struct classes_link *links = classes->links;
    uint32_t group = classes->list[class].cursor;
    uint32_t left = (step + 1) / 2;
    if (!group)
        return 0;
    if (step % 2)
        while (left--)
            group = links[group].older;
    else
        while (left--)
            group = links[group].newer;
    return group;
}
// Whether there is such a group.
bool classes_has(const struct classes *classes, uint64_t group);
void classes_free(struct classes *classes);
// Aborts if an invariant does not hold. For tests.
void classes_check(const struct classes *classes);

#endif
