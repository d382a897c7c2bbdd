// A flame graph: a tree of calls as one SVG file that needs nothing else.
//
// Width is the share of the total, height the depth of calls; neighbours are sorted by name, and
// colours follow the library. In a browser: a click zooms, the field searches (regular expressions,
// with the share that matched), hovering shows the full name. Without scripts it is still a
// picture.
//
// Names come from the target: they are written as text, never as markup, and what XML cannot hold
// becomes \xNN. The same tree gives the same bytes.
#ifndef QUERN_REPORT_FLAMEGRAPH_H
#define QUERN_REPORT_FLAMEGRAPH_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/stacks/calltree.h"

struct flamegraph_options {
    const char *title;
    const char *details; // a line below it
    const char *unit;    // what values count: "samples"
    bool inverted;       // the root at the top
};

// The tree must be finished.
void flamegraph_write(FILE *out, const struct calltree *tree,
                      const struct flamegraph_options *options);

#endif
