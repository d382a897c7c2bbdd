// Writes a call graph as a callgrind.out file, or the costs in it as a cachegrind.out file, for
// KCachegrind, the annotate scripts and Quern itself. profile/costs/visit.h reads them back.
#ifndef QUERN_REPORT_CALLGRIND_H
#define QUERN_REPORT_CALLGRIND_H

#include <stdbool.h>

#include "base/text.h"
#include "profile/costs/call_graph.h"

struct callgrind_options {
    bool lines, instructions;
    bool compress_strings, compress_positions;
    const char *creator;
    const char *command;
    int pid;                 // 0: not said
    unsigned part;           // from 1; 0: not said
    bool continues;          // behind the part before in the same file
    int thread;              // from 1; 0: all
    const char *trigger;     // why this part was written; NULL: not said
    const char *more;        // further lines of the head, each with its end; NULL: none
    const uint64_t *summary; // what the events add up to; NULL: what the costs do
    const char *caches[3];   // I1, D1, LL; NULL: not simulated
};

// Sorts and merges what is in the graph, then adds the file's text.
void callgrind_write(struct call_graph *, const struct callgrind_options *, struct text *);
void cachegrind_write(struct call_graph *, const struct callgrind_options *, struct text *);

#endif
