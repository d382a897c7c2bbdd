// A tree of calls as text: the heaviest functions, or the tree from either end.
#ifndef QUERN_REPORT_TREE_TEXT_H
#define QUERN_REPORT_TREE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "profile/stacks/calltree.h"
#include "report/shared/paint.h"

// At most `top` functions, sorted by self weight. The tree must be finished, as below.
void tree_text_functions(FILE *out, const struct calltree *, size_t top);
// The tree from the root, without nodes below `threshold` percent of the whole.
void tree_text(FILE *out, const struct calltree *, double threshold, const struct paint *);

#endif
