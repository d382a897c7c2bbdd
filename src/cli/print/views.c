#include "cli/print/views.h"

#include <string.h>

#include "cli/words.h"

#define RECORDING [PRINT_RECORDING] = true
#define OTHER     [PRINT_OTHER] = true
#define ANY       [PRINT_ANY] = true
#define JSON      [PRINT_JSON] = true

const struct print_view_words print_views[PRINT_VIEWS] = {
    [VIEW_SUMMARY] = {"summary",
                      "what the file is, its totals, and its largest entries",
                      {RECORDING, OTHER, JSON},
                      "overview"},
    [VIEW_TOP_DOWN] = {"top-down",
                       "the tree of calls from main inwards",
                       {RECORDING, OTHER, ANY, JSON},
                       "tree"},
    [VIEW_BOTTOM_UP] = {"bottom-up",
                        "the tree of callers, from the innermost function outwards",
                        {RECORDING, OTHER, ANY, JSON},
                        "tree",
                        .inverted = true},
    [VIEW_FUNCTIONS] = {"functions",
                        "sums by function",
                        {RECORDING, OTHER, ANY, JSON},
                        "functions"},
    [VIEW_LIBRARIES] = {"libraries",
                        "sums by program and library",
                        {RECORDING, OTHER, ANY, JSON},
                        "libraries"},
    [VIEW_THREADS] = {"threads", "sums by thread, of a recording", {RECORDING, JSON}, "threads"},
    [VIEW_MINE] = {"mine",
                   "bytes at the peak by function of the program's own (--mine)",
                   {RECORDING},
                   NULL},
    [VIEW_GROWTH] = {"growth",
                     "functions that keep growing, as quern diagnose finds them",
                     {RECORDING},
                     NULL},
    [VIEW_LIFETIMES] = {"lifetimes",
                        "how long blocks live, and where short-lived ones come from",
                        {RECORDING},
                        NULL},
    [VIEW_TIMELINE] = {"timeline",
                       "the heap over time, of a recording or a massif.out",
                       {JSON},
                       "timeline"},
    [VIEW_SITES] = {"sites", "the heap over time by stack, the largest ones", {JSON}, "sites"},
    [VIEW_HISTOGRAMS] = {"histograms",
                         "sizes and lifetimes of blocks, of a recording",
                         {JSON},
                         "histograms"},
    [VIEW_FINDINGS] = {"findings",
                       "errors and leaks with their stacks, of memcheck's XML",
                       {OTHER, JSON},
                       "findings"},
    [VIEW_DIAGNOSIS] = {"diagnosis",
                        "problems in the use of memory, of a recording or a dhat.out",
                        {JSON},
                        "diagnosis"},
    [VIEW_POINTS] = {"points", "program points, of a dhat.out", {JSON}, "points"},
    [VIEW_COSTS] = {"costs",
                    "functions with calls, of a callgrind.out or cachegrind.out",
                    {JSON},
                    "costs"},
    [VIEW_CALLS] = {"calls",
                    "callers and callees of --function, of a callgrind.out",
                    {JSON},
                    "calls"},
    [VIEW_SOURCE] = {"source",
                     "lines of the file of --function with their costs",
                     {JSON},
                     "source"},
    [VIEW_ASSEMBLY] = {"assembly",
                       "instructions of --function, with --dump-instr=yes",
                       {JSON},
                       "assembly"},
};

bool print_request_filters(const struct print_request *request) {
    const struct heap_filter *filter = request->filter;
    return filter->size_from || filter->size_to != UINT64_MAX || filter->life_from ||
           filter->life_to != UINT64_MAX || filter->function || filter->library;
}

enum print_view print_view_find(const char *name, enum print_kind kind) {
    for (enum print_view i = 0; i < PRINT_VIEWS; i++)
        if (print_views[i].serves[kind] &&
            strcmp(print_views[i].name, name ? name : "summary") == 0)
            return i;
    return PRINT_VIEWS;
}

int print_view_refuse(const char *name, enum print_kind kind) {
    struct text advice = {0};
    const char *separator = "choose one of ";
    for (enum print_view i = 0; i < PRINT_VIEWS; i++) {
        if (!print_views[i].serves[kind])
            continue;
        text_format(&advice, "%s%s", separator, print_views[i].name);
        separator = ", ";
    }
    int status = words_invalid("--view", name, advice.bytes);
    text_free(&advice);
    return status;
}

static bool offer(enum print_kind kind, size_t index, struct option_choice *choice) {
    for (enum print_view i = 0; i < PRINT_VIEWS; i++) {
        if (!print_views[i].serves[kind] || index--)
            continue;
        *choice = (struct option_choice){.name = print_views[i].name, .help = print_views[i].help};
        return true;
    }
    return false;
}

bool print_offer_recording_views(size_t index, struct option_choice *choice) {
    return offer(PRINT_RECORDING, index, choice);
}

bool print_offer_other_views(size_t index, struct option_choice *choice) {
    return offer(PRINT_OTHER, index, choice);
}

bool print_offer_json_views(size_t index, struct option_choice *choice) {
    return offer(PRINT_JSON, index, choice);
}
