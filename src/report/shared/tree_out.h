// A tree of calls in the formats of other programs. Trees must be finished. Supervisor context.
#ifndef QUERN_REPORT_TREE_OUT_H
#define QUERN_REPORT_TREE_OUT_H

#include <stdio.h>

#include "profile/stacks/calltree.h"
#include "report/shared/pprof.h"

// For speedscope.app: one sampled profile.
void tree_speedscope(FILE *out, const struct calltree *, const char *name);
// One sample for each node with a value of its own, which is number `type` of `types`. files says
// where functions are, by number, "" or NULL where that is not known; it may itself be NULL.
void tree_pprof_samples(struct pprof *, const struct calltree *, const char *const *files,
                        unsigned type, unsigned types);

#endif
