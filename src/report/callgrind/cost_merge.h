// One callgrind.out of several, or one cachegrind.out of several: costs, calls and jumps at the same
// place of the same function are added up. Files are Quern's, Valgrind's or anyone's.
//
// What the files must have in common is their kind and their events, whatever the order of these.
// The result tells lines and addresses if all files do. Of the head stays what all files say alike;
// otherwise the command and the caches are those of the first.
//
// Memory is that of the sum, not of all files: each line read goes into its place at once.
#ifndef QUERN_REPORT_COST_MERGE_H
#define QUERN_REPORT_COST_MERGE_H

#include <stdio.h>

#include "base/text.h"

struct cost_merge;

struct cost_merge *cost_merge_new(void);
void cost_merge_free(struct cost_merge *);
// Adds a file; the path is what messages call it. NULL, or why it cannot be added, to be freed:
// nothing should be done with the rest then.
char *cost_merge_add(struct cost_merge *, const char *path, FILE *in);
// What the user should know: in what the files differ. One sentence a line; nothing: NULL.
char *cost_merge_remarks(const struct cost_merge *);
// Adds the merged file's text. `creator` writes it, if the files do not agree who did.
void cost_merge_write(struct cost_merge *, const char *creator, struct text *out);

#endif
