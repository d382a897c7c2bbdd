// From a file of counts (wire/call_counts.h) to a call graph with names.
//
// The target writes the file and may still be writing it. Every number in it is checked against
// its bounds before it is used. Names need the mappings of the process, so read it before they are
// forgotten.
#ifndef QUERN_SUPERVISOR_COUNTS_GRAPH_H
#define QUERN_SUPERVISOR_COUNTS_GRAPH_H

#include <stdbool.h>

#include "profile/costs/call_graph.h"
#include "supervisor/tool.h"
#include "tools/callgrind/supervisor/base.h"
#include "wire/call_counts.h"

struct counts_source {
    int file;
    int pid;
    struct symbols *symbols;
    bool show_below_main;
    bool cachegrind;          // events in its order
    bool plain_names;         // without what tells contexts of a function apart
    int thread;               // -1: all
    struct counts_base *base; // NULL: since the beginning
    bool forget;              // nothing is shown: counting starts from 0
};

struct counts_result {
    struct call_graph graph;
    bool incomplete;
    struct counts_cache caches[3]; // line 0: not simulated
};

// False: the file is not what it should be. Free the result in any case.
bool counts_graph_read(const struct counts_source *, struct counts_result *);
// How many threads have a part in the file.
uint32_t counts_graph_threads(const struct counts_source *);
// Whether anything is counted from now on. Threads follow at their next call.
bool counts_graph_switch(const struct counts_source *, bool on);
bool counts_graph_is_on(const struct counts_source *);
// Lets the target go on, which has asked for a dump.
void counts_graph_answer(const struct counts_source *);
void counts_graph_free(struct counts_result *);

#endif
