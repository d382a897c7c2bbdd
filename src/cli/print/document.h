// quern print of any file that quern view reads, with the views that all formats share: facts, sums
// by function and library, trees of calls, and the errors of memcheck's XML. The page and --json
// show the same numbers (view/documents/document.h).
#ifndef QUERN_CLI_PRINT_DOCUMENT_H
#define QUERN_CLI_PRINT_DOCUMENT_H

#include "cli/print/views.h"

// The exit status, after a message on stderr if it is not 0.
int print_document(const struct print_request *request);

#endif
