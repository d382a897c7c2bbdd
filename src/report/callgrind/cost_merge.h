// Merges several callgrind.out files, or several cachegrind.out files, into one: costs, calls and
// jumps at the same place of the same function are added up. Any program may have written them.
//
// The files must be of the same kind and have the same events, in any order. The result has lines
// and addresses if all files have them. The head keeps what is the same in all files; command and
// caches are otherwise those of the first.
//
// Memory grows with the result, not with the number of files: each line is added as it is read.
#ifndef QUERN_REPORT_COST_MERGE_H
#define QUERN_REPORT_COST_MERGE_H

#include <stdio.h>

#include "base/text.h"

struct cost_merge;

struct cost_merge *cost_merge_new(void);
void cost_merge_free(struct cost_merge *);
// Adds a file; messages name it by its path. NULL, or why it cannot be added, to be freed. After
// that, only cost_merge_free may be called.
char *cost_merge_add(struct cost_merge *, const char *path, FILE *in);
// How the files differ, for the user: one sentence per line. NULL: they do not.
char *cost_merge_remarks(const struct cost_merge *);
// Adds the merged file's text. `creator` is named as its author if the files name different ones.
void cost_merge_write(struct cost_merge *, const char *creator, struct text *out);

#endif
