// The page that web/ is bundled to at build time.
#ifndef QUERN_VIEW_PAGE_H
#define QUERN_VIEW_PAGE_H

#include <stddef.h>

// One file of it. Text.
struct page_file {
    const unsigned char *bytes;
    size_t size;
};

// Why this program has no page; NULL: it has one.
extern const char *const page_missing;
extern const struct page_file page_script, page_style;
// As Content-Security-Policy names them: 'sha256-...'.
extern const char *const page_script_hash, *const page_style_hash;

#endif
