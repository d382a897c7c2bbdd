// quern print --json: what the page shows of a file, for programs. Any format quern view reads.
#ifndef QUERN_CLI_PRINT_JSON_H
#define QUERN_CLI_PRINT_JSON_H

#include <stddef.h>

#include "report/heap_filter.h"

struct print_json_request {
    const char *path;
    const char *view; // NULL: summary
    const char *by;   // a metric; NULL: the first
    double threshold; // percent
    size_t top;
    const struct heap_filter *filter; // only its times are served
};

// The exit status, after a message on stderr if it is not 0.
int print_json(const struct print_json_request *request);
// What --help says of its views.
void print_json_help(FILE *out);

#endif
