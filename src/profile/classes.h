// The blocks of a recording by what is alike in them: how its writer and its reader, which keep the
// same tables, speak of a block in few bits.
//
// Words:
//   class    the live blocks of one stack and size. Numbered from 1 on in the order of first use
//   loose    of a class: it takes blocks of all sizes of a stack, once that has many classes
//   already:
//            so tables stay small when sizes are as good as random
//   group    blocks of a class that one thread allocated within one step of recorded time, and that
//            have one size; or a single one that was resized. The blocks of a group differ in
//            nothing but their numbers, so which of them is meant is never said
//   ring     the groups of a class by age, each linked to the next older and the next newer one;
//            beyond the oldest comes the newest
//   cursor   the group of a class that was left last, or the next older one once that is empty
//   step     the way from the cursor to another group of the ring: 0 is the cursor itself, 2n - 1
//            the nth older, 2n the nth newer one
//
// Programs release blocks of one kind in the order in which they allocated them, or in the reverse
// order, or close to it: most steps are small, and equal to the one before.
//
// Invariants: a group that is in a ring has blocks; the newest one of a class is where others are
// added. Numbers of classes and groups depend on nothing but the calls made. Supervisor context.
#ifndef QUERN_PROFILE_CLASSES_H
#define QUERN_PROFILE_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLASSES_STEP_MAX 126
#define CLASSES_OF_STACK 64 // those that are not loose
#define CLASSES_LOOSE    UINT64_MAX

struct classes_class {
    uint64_t size; // CLASSES_LOOSE: any
    uint32_t stack;
    uint32_t newest, cursor; // groups; 0: there are none
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
    uint32_t older,
        newer; // in the ring; of a group that is not in use, `newer` is the next such one
    uint32_t count;
    uint32_t first, last; // the owner's own: 0 in a new group
};

struct classes {
    struct classes_class *list; // [0] is not used
    uint32_t count, room;
    struct classes_slot {
        uint32_t hash, class;
    } * slots; // a hash table
    uint32_t slot_count;
    struct classes_stack {
        uint32_t count; // of its classes that are not loose
        uint32_t loose; // 0: none yet
    } * stacks;
    uint32_t stack_count;
    struct classes_group *groups; // [0] is not used
    uint32_t group_count, group_room;
    uint32_t unused; // the first group that is not in use
};

// The class for a stack and size, which may be loose; 0: there is none yet.
uint32_t classes_find(const struct classes *classes, uint32_t stack, uint64_t size);
// Makes the class that find has not found; a loose one if the stack has enough others.
uint32_t classes_add(struct classes *classes, uint32_t stack, uint64_t size);
static inline bool classes_is_loose(const struct classes *classes, uint32_t class) {
    return classes->list[class].size == CLASSES_LOOSE;
}

// A block comes: the group it belongs to.
uint32_t classes_enter(struct classes *classes, uint32_t class, const struct classes_blocks *like,
                       bool alone);
// A block goes. The group may be gone afterwards.
void classes_leave(struct classes *classes, uint32_t group);
// The step to a group; CLASSES_STEP_MAX + 1 if it is further away.
uint32_t classes_step(const struct classes *classes, uint32_t group);
// The group at a step in a class; 0: the class has none.
uint32_t classes_at(const struct classes *classes, uint32_t class, uint32_t step);
// Whether there is such a group.
bool classes_has(const struct classes *classes, uint64_t group);
void classes_free(struct classes *classes);
// Aborts if an invariant does not hold. For tests.
void classes_check(const struct classes *classes);

#endif
