// The page as HTML: as it is served, and as one file that holds its data and needs nothing else.
//
// The file holds the answers to all questions the page asks before anybody zooms in: what is
// narrower than the page can show is not in it. Source and machine code are in it for the functions
// that cost most; parts of the run are those it is cut into here (HTML_WINDOWS); each two files are
// compared. Its policy lets only its own script and style run. Supervisor context.
#ifndef QUERN_VIEW_HTML_H
#define QUERN_VIEW_HTML_H

#include <stdio.h>

#include "view/documents/document.h"

#define HTML_FILES        4                    // on a page
#define HTML_WINDOWS      8                    // of a recording; of a massif.out its snapshots
#define HTML_WINDOWS_SIZE ((uint64_t)16 << 20) // bytes of a recording that is read once for each

extern const char html_served[];

// There must be a page (page.h), and at most HTML_FILES documents.
void html_write(FILE *out, struct document **documents, size_t count);

#endif
