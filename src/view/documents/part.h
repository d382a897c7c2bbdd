// A part of a document's stacks, as the page asks for it: focus, ignore and hide by regular
// expression, and the callers or callees of one function (profile/stacks/calltree_filter.h).
//
// Expressions are POSIX extended ones, in any case of letters. Those that could take very long or
// much memory are refused. Supervisor context; the caller holds the document's lock.
#ifndef QUERN_VIEW_PART_H
#define QUERN_VIEW_PART_H

#include <stdbool.h>

#include "view/documents/document.h"

// NULL or "": not asked for.
struct document_part {
    const char *focus, *ignore, *hide;
    const char *below, *above; // names of functions, as they are
};

// Whether anything is asked for.
bool document_part_is_any(const struct document_part *part);
// The tree of that part in a shape, which lives until the next call; NULL, with *problem set, to be
// freed: there is none.
const struct calltree *document_part_tree(struct document *document, unsigned metric,
                                          unsigned shape, const struct document_part *part,
                                          char **problem);
// The functions of a tree that an expression matches, a value for each, to be freed; NULL, with
// *problem set, to be freed: it is no expression.
bool *document_part_matches(const struct calltree *tree, const char *expression, char **problem);

#endif
