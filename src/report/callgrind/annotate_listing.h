// A profile of costs laid out as callgrind_annotate and cg_annotate do, for programs that read
// their output. For the names of names.h; people read `quern annotate`.
#ifndef QUERN_REPORT_ANNOTATE_LISTING_H
#define QUERN_REPORT_ANNOTATE_LISTING_H

#include "report/callgrind/annotate.h"

struct annotate_listing {
    const struct annotate_options *options;
    const char *path;           // of the profile
    unsigned sort[COST_EVENTS]; // what functions are sorted by, the first decides
    unsigned sort_count;
    // For each of `sort`: functions are shown until they make up these percentages (callgrind), or
    // if they have this share of the first (cachegrind).
    double thresholds[COST_EVENTS];
    bool is_cachegrind;
    const char *const *sources; // to show besides those of functions; the profile's words
    size_t source_count;
};

void annotate_list(FILE *out, const struct cost_profile *, const struct annotate_listing *);

#endif
