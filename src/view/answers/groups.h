// Functions of a profile by class, file or object, as answers group them. For answers/costs.c and
// answers/groups.c only.
#ifndef QUERN_VIEW_ANSWERS_GROUPS_H
#define QUERN_VIEW_ANSWERS_GROUPS_H

#include "profile/costs/costs.h"

enum group_by { GROUP_NONE, GROUP_CLASS, GROUP_FILE, GROUP_OBJECT };

// How the page asks for functions that have no class, or are of unknown origin.
#define GROUP_REST "(none)"

// The grouping of this name: "class", "file", "object". GROUP_NONE for any other, and NULL.
enum group_by group_by(const char *name);
// The group of a function: text of *size bytes. An empty one: it has no class, or is of unknown
// origin.
const char *group_of(const struct cost_function *function, enum group_by by, size_t *size);

#endif
