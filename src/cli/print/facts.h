// The facts of a document (view/documents/document.h) as lines of text. They come as the JSON that
// the page gets, so the text cannot say something else.
#ifndef QUERN_CLI_PRINT_FACTS_H
#define QUERN_CLI_PRINT_FACTS_H

#include <stdio.h>

// `json` is an array of objects with label, value and unit.
void print_facts(FILE *out, const char *json);

#endif
