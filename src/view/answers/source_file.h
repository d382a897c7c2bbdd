// Source files beside their costs. Only files that a document names are shown, and only if they are
// called as sources are: a profile from elsewhere must not show a private key.
#ifndef QUERN_VIEW_SOURCE_FILE_H
#define QUERN_VIEW_SOURCE_FILE_H

#include <stdbool.h>
#include <stdio.h>

// NULL: it is not there, too large, or not called as a source is.
FILE *source_file_open(const char *path);
// The next line without its end, in *text of *room, as getline has it. False: there is none.
bool source_file_line(FILE *file, char **text, size_t *room);
// Whether the file has been changed since the document was written, so that its lines or
// instructions may be others.
bool source_file_is_newer(const char *path, const char *document);

#endif
