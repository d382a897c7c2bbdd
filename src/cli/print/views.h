// The views of quern print: one table for recordings, for other files, and for --json. Names, help,
// completion and the message about an unknown view derive from it.
#ifndef QUERN_CLI_PRINT_VIEWS_H
#define QUERN_CLI_PRINT_VIEWS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/options/options.h"
#include "report/heap/filter.h"
#include "report/shared/paint.h"

enum print_view {
    VIEW_SUMMARY,
    VIEW_TOP_DOWN,
    VIEW_BOTTOM_UP,
    VIEW_FUNCTIONS,
    VIEW_LIBRARIES,
    VIEW_THREADS,
    VIEW_MINE,
    VIEW_GROWTH,
    VIEW_LIFETIMES,
    VIEW_TIMELINE,
    VIEW_SITES,
    VIEW_HISTOGRAMS,
    VIEW_FINDINGS,
    VIEW_DIAGNOSIS,
    VIEW_POINTS,
    VIEW_COSTS,
    VIEW_CALLS,
    VIEW_SOURCE,
    VIEW_ASSEMBLY,
    PRINT_VIEWS,
};

// What a view is made of, or written as.
enum print_kind {
    PRINT_RECORDING, // text, by the printer of recordings
    PRINT_OTHER,     // text, of files that have no printer of their own
    PRINT_ANY,       // text, of all formats with stacks
    PRINT_JSON,
    PRINT_KINDS,
};

struct print_view_words {
    const char *name, *help;
    bool serves[PRINT_KINDS];
    const char *question; // of view/answers/answers.h, for PRINT_JSON
    bool inverted;
};

extern const struct print_view_words print_views[PRINT_VIEWS];

// What to show of a file that has no printer of its own, or as JSON.
struct print_request {
    const char *path;
    const char *view;                 // NULL: summary
    const char *by;                   // a metric; NULL: the first
    double threshold;                 // percent
    size_t top;                       // rows
    size_t callers;                   // frames of a stack
    const struct heap_filter *filter; // only its times are served
    const struct paint *paint;        // NULL: plain
};

// Whether the filter asks for more than times.
bool print_request_filters(const struct print_request *);

// The view of this name (NULL: the summary) for this kind; PRINT_VIEWS: there is none.
enum print_view print_view_find(const char *name, enum print_kind);
// Rejects the name and lists the views of this kind; WORDS_FAILED.
int print_view_refuse(const char *name, enum print_kind);
// The views of a kind, for --help.
bool print_offer_recording_views(size_t index, struct option_choice *choice);
bool print_offer_other_views(size_t index, struct option_choice *choice);
bool print_offer_json_views(size_t index, struct option_choice *choice);

#endif
