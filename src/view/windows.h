// Parts of recordings that are kept open, because a part needs a reading of its own. Those used
// last are kept.
//
// Threads: any. A part that one thread reads can be waited for by others; one that is in use is
// not dropped.
#ifndef QUERN_VIEW_WINDOWS_H
#define QUERN_VIEW_WINDOWS_H

#include "view/documents/document.h"

#define WINDOWS 3

struct window {
    struct document *document; // NULL: it is being read, or the place is free
    size_t file;
    struct document_window part;
    uint64_t used; // 0: free
    unsigned users;
};

struct windows {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct window places[WINDOWS];
    uint64_t uses;
};

void windows_init(struct windows *windows);
// The part of a file, which `path` and `file` name. NULL: the reading was cancelled.
struct window *windows_take(struct windows *windows, size_t file, const char *path,
                            struct document_window part);
void windows_leave(struct windows *windows, struct window *window);

#endif
