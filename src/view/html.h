// The page as HTML: as it is served, and as one file that holds its data and needs nothing else.
//
// The file holds the answers to all questions the page asks before anybody zooms in: what is
// narrower than the page can show is not in it. No source code is in it either. Its policy lets
// only its own script and style run. Supervisor context.
#ifndef QUERN_VIEW_HTML_H
#define QUERN_VIEW_HTML_H

#include <stdio.h>

#include "view/document.h"

extern const char html_served[];

// There must be a page (page.h).
void html_write(FILE *out, struct document *document);

#endif
