// quern print --json: what the page shows of a file, for programs. Any format quern view reads.
#ifndef QUERN_CLI_PRINT_JSON_H
#define QUERN_CLI_PRINT_JSON_H

#include "cli/print/views.h"

// The exit status, after a message on stderr if it is not 0.
int print_json(const struct print_request *request);

#endif
