// quern print of any file that quern view reads, in the terms that all formats share: facts, sums
// by function and library, trees of calls, and the list of errors of memcheck's XML. The numbers
// are those of the page and of --json (view/documents/document.h).
#ifndef QUERN_CLI_PRINT_DOCUMENT_H
#define QUERN_CLI_PRINT_DOCUMENT_H

#include "cli/print/views.h"

// The exit status, after a message on stderr if it is not 0.
int print_document(const struct print_request *request);

#endif
