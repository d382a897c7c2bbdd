// Reports on the census of a running process (profile/heap/census.h) and its leaks, as text and as
// JSON.
//
// Words:
//   loss    lost blocks of one kind, size and type. Nobody knows where they were allocated
//   type    the class of a C++ object that has virtual functions: its first word says so
//   holder  a variable or stack that leads to blocks that are still reachable
// Supervisor context.
#ifndef QUERN_REPORT_HEAP_CENSUS_H
#define QUERN_REPORT_HEAP_CENSUS_H

#include <stdio.h>

#include "profile/heap/census.h"
#include "report/findings/named_finding.h"
#include "symbols/symbols.h"

struct census_loss {
    uint8_t kind;     // enum leak_kind
    uint64_t size;    // of each block
    const char *type; // NULL: not known
    uint64_t blocks, bytes;
    uint64_t indirect; // bytes that are lost with them
    uint64_t example;  // address of one of them
};

struct census_holder {
    char *name;
    uint64_t blocks, bytes;
};

// How the copy of the process is looked at.
struct census_view {
    void *context;
    struct symbols *symbols; // knows the mappings of the process
    // The first word of a block, if it leads to constants of a file. False: it does not.
    bool (*first_word)(void *context, uint64_t block, uint64_t *word);
    // What a root that is no variable of a file lies in ("stack of thread 12"). To be freed.
    char *(*place)(void *context, uint64_t root);
};

struct census_report {
    const struct census *census;
    struct leak_sums sums;
    struct census_loss *losses; // the largest first
    size_t loss_count;
    struct census_holder *holders; // the largest first
    size_t holder_count;
};

// `graph` is classified. Types and names live as long as the symbols.
void census_report_make(struct census_report *report, const struct census *census,
                        const struct leak_graph *graph, const struct census_view *view);
// The name of what leads to reachable blocks. To be freed.
char *census_root_name(const struct census_view *view, pid_t pid, uint64_t root);
void census_report_free(struct census_report *report);

struct census_options {
    size_t top;     // lines in each list
    unsigned kinds; // of losses that are listed: a set of 1 << enum leak_kind
};
void census_text(FILE *out, const struct census_report *report,
                 const struct census_options *options);
// census_json.c
void census_json(FILE *out, const struct census_report *report,
                 const struct census_options *options);

#endif
