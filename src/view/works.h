// The answers that are being made: how far each is, for the page that waits for it, and an end for
// those that nobody waits for any more.
//
// A work belongs to one request and to the thread that answers it; base/progress.h reports to it.
// It is cancelled when its client closes the connection. Any thread may list the works.
#ifndef QUERN_VIEW_WORKS_H
#define QUERN_VIEW_WORKS_H

#include <pthread.h>

#include "base/progress.h"
#include "report/shared/json.h"

struct work {
    struct works *works;
    struct progress_watcher watcher;
    const char *id; // the client's own name for it; NULL: none
    int fd;         // of the connection
    const char *what;
    uint64_t done, total;
    struct work *next;
};

struct works {
    pthread_mutex_t lock;
    struct work *first;
};

void works_init(struct works *works);
// From now on, `work` is what this thread does. The id must outlive it.
void works_begin(struct works *works, struct work *work, const char *id, int fd);
void works_end(struct work *work);
// The works that have an id.
void works_write(struct works *works, struct json *json);

#endif
