// Folded stacks, one line for each path of a tree: `main;work;inner 42`. This is what
// flamegraph.pl, speedscope and others read.
//
// In names, a semicolon is written as a colon, and what cannot stand in a line as \xNN.
#ifndef QUERN_REPORT_FOLDED_H
#define QUERN_REPORT_FOLDED_H

#include <stdio.h>

#include "base/text.h"
#include "profile/stacks/calltree.h"

// The tree must be finished.
void folded_write(FILE *out, const struct calltree *tree);
// The same with frames in another form: add_frame appends one to a line.
void folded_write_as(FILE *out, const struct calltree *tree,
                     void (*add_frame)(struct text *line, const struct calltree_function *));

#endif
