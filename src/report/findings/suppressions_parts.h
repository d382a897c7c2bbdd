// Suppressions as their parser leaves them and their matcher finds them. For these two only;
// suppressions.h is for all others.
#ifndef QUERN_REPORT_SUPPRESSIONS_PARTS_H
#define QUERN_REPORT_SUPPRESSIONS_PARTS_H

#include "report/findings/suppressions.h"

enum location_kind { LOCATION_FUNCTION, LOCATION_OBJECT, LOCATION_SOURCE, LOCATION_ANY };

struct location {
    enum location_kind kind;
    char *pattern;
    uint32_t line; // of LOCATION_SOURCE; 0: any
};

struct entry {
    struct entry *next;
    struct suppression shown;
    char *kind;
    char *parameter;     // NULL: any
    unsigned leak_kinds; // bits 1 << enum leak_kind
    struct location *locations;
    size_t location_count;
};

struct suppressions {
    const char *tool;    // whose entries are taken
    struct entry *first; // the one that is tried first
};

void suppressions_entry_free(struct entry *);

#endif
