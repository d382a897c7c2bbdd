// A file opened for looking at: any of the formats Quern or its peers write, in the terms that all
// views share.
//
// Words:
//   document  a file that has been read, or a window of one
//   metric    what its stacks are weighed by: bytes at the peak, instructions, samples
//   window    a part of a recording by time (heap/filter.h); of a massif.out the snapshot to show
//   shape     how a tree of calls is laid out (calltree_shapes.h)
//
// One table of formats. Nothing in a file is believed; one that cannot be read has a problem, one
// that is cut off has a notice, and both are shown.
//
// Supervisor context. Threads share a document: whoever uses it holds its lock, except for
// document_details and document_diagnoses, which read the file again, take long, and have a lock of
// their own. What they return does not change any more.
#ifndef QUERN_VIEW_DOCUMENT_H
#define QUERN_VIEW_DOCUMENT_H

#include <pthread.h>

#include "profile/stacks/calltree_shapes.h"
#include "profile/costs/costs.h"
#include "report/heap/file.h"
#include "report/shared/json.h"
#include "report/massif/file.h"
#include "report/flame/stack_file.h"

#define DOCUMENT_METRICS    COST_EVENTS
#define DOCUMENT_TREES      14
#define DOCUMENT_NODES_MAX  ((size_t)1 << 20) // of a tree
#define DOCUMENT_WINDOW_ALL ((struct document_window){.to = UINT64_MAX})

struct document_window {
    uint64_t from, to; // nanoseconds; of a massif.out in its own unit
};

struct document_metric {
    const char *name, *help;
    const char *unit; // "bytes", "blocks", or what the events are called
    uint64_t total;
};

struct document;
struct diagnoses; // report/diagnose/diagnose.h

// One line of what is known about a file: a number with its unit, or a text.
struct document_fact {
    const char *label;
    const char *text; // NULL: it is a number
    uint64_t value;
    const char *unit; // "" if there is none
};

// Takes facts. Their texts live only during the call.
struct document_sink {
    void (*take)(void *context, const struct document_fact *fact);
    void *context;
};

struct document_format {
    const char *name; // as the page and --json call it
    const char *help;
    bool (*is_one)(const char *start, size_t size);
    // NULL, or what is wrong, to be freed. What was read is freed in either case.
    char *(*read)(struct document *document, int fd);
    void (*free)(struct document *document);
    // A finished tree of calls by a metric, from the outermost function; NULL: there are none.
    struct calltree *(*tree)(struct document *document, unsigned metric);
    // Whether it says of any function which program or library it is from. NULL: it does.
    bool (*tells_libraries)(const struct document *document);
    // Hands the facts to the sink, in the order in which they are shown.
    void (*facts)(struct document *document, const struct document_sink *sink);
    // Names of views beside those that come with a tree; NULL at the end.
    const char *const *views;
    // Adds a metric that a formula of others describes. False: it cannot be. NULL: it has none.
    bool (*add_metric)(struct document *document, const char *formula);
};

struct document {
    pthread_mutex_t lock, reading; // `reading`: while the file is read again
    char *path;
    struct document_window window;
    const struct document_watch *watch;   // while it is read, else NULL
    const struct document_format *format; // NULL: not known
    char *problem, *notice;
    const char *command; // may be NULL
    struct document_metric metrics[DOCUMENT_METRICS];
    unsigned metric_count;
    struct document_tree {
        struct calltree *tree;
        unsigned metric, shape;
        char *part; // names the part of the stacks that it shows (part.h); NULL: all
        uint64_t used;
    } trees[DOCUMENT_TREES];
    uint64_t uses;
    // Contents, by format.
    struct heap_file heap;
    struct timeline *timeline;
    struct heap_details *details; // NULL: not asked for yet
    struct diagnoses *diagnoses;  // likewise
    struct massif_file massif;
    const struct massif_file_snapshot *snapshot; // the one whose tree is shown; NULL: none
    struct cost_profile *costs;
    unsigned event_count;        // of costs, without derived events
    char *formulas[COST_EVENTS]; // that were asked for
    unsigned formula_count;
    struct cost_inclusive *inclusive; // of costs
    uint32_t *first_lines; // of costs, by function: where it begins in its own file, or 0
    struct calltree *folded;
    struct stack_info stacks; // of folded
    struct findings_file *findings;
    struct dhat_file *dhat;
};

// What is known of a recording while its events are read.
struct document_so_far {
    uint64_t allocations; // blocks
    const struct timeline *timeline;
};

// For whoever wants to know how far reading is; either may be NULL. Called by the thread that
// reads.
struct document_watch {
    // With the descriptor before it is read, and -1 afterwards.
    void (*opened)(void *context, int fd);
    // From time to time, several times a second.
    void (*so_far)(void *context, const struct document_so_far *so_far);
    void *context;
};

// Opens and reads; never NULL. The watch may be NULL.
struct document *document_open(const char *path, struct document_window window,
                               const struct document_watch *watch);
void document_free(struct document *document);
// Why a file cannot be one, as far as its first bytes tell: it is missing, empty, or of no format.
// NULL: it may be one. To be freed.
char *document_refusal(const char *path);

// The metric of this name or formula, the first for NULL; -1: there is none.
int document_metric(struct document *document, const char *name);
// NULL: it has no stacks. Lives until DOCUMENT_TREES others were asked for.
const struct calltree *document_tree(struct document *document, unsigned metric, unsigned shape);
// For part.c: a kept tree of a part of the stacks, or NULL; and keeping one, which the document
// then owns.
const struct calltree *document_kept_tree(struct document *document, unsigned metric,
                                          unsigned shape, const char *part);
const struct calltree *document_keep_tree(struct document *document, unsigned metric,
                                          unsigned shape, const char *part, struct calltree *tree);
bool document_has_view(const struct document *document, const char *view);
// The last part of its path.
const char *document_name(const struct document *document);

// Of a recording: what a second reading tells, done when it is first asked for. NULL: the file
// cannot be read any more.
struct heap_details *document_details(struct document *document);
// Of a recording or a dhat.out: what is wrong with the program's memory, made when it is first
// asked for. NULL: *problem says why, to be freed.
const struct diagnoses *document_diagnoses(struct document *document, char **problem);

// The formats, one file each.
extern const struct document_format document_recording, document_massif, document_callgrind,
    document_cachegrind, document_folded, document_findings, document_dhat;

// For the formats: hand one fact to the sink.
void document_fact(const struct document_sink *sink, const char *label, uint64_t value,
                   const char *unit);
void document_fact_text(const struct document_sink *sink, const char *label, const char *text);

#endif
