#include "view/works.h"

#include <errno.h>
#include <sys/socket.h>

void works_init(struct works *works) {
    *works = (struct works){0};
    pthread_mutex_init(&works->lock, NULL);
}

// A client that waits for its answer sends nothing; one that has gone can be read to the end.
static bool is_gone(int fd) {
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static bool see(void *context, const char *what, uint64_t done, uint64_t total) {
    struct work *work = context;
    pthread_mutex_lock(&work->works->lock);
    work->what = what;
    work->done = done;
    work->total = total;
    pthread_mutex_unlock(&work->works->lock);
    return !is_gone(work->fd);
}

void works_begin(struct works *works, struct work *work, const char *id, int fd) {
    *work = (struct work){.works = works, .watcher = {work, see}, .id = id, .fd = fd};
    pthread_mutex_lock(&works->lock);
    work->next = works->first;
    works->first = work;
    pthread_mutex_unlock(&works->lock);
    progress_watch(&work->watcher);
}

void works_end(struct work *work) {
    progress_watch(NULL);
    pthread_mutex_lock(&work->works->lock);
    struct work **at = &work->works->first;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
    pthread_mutex_unlock(&work->works->lock);
}

void works_write(struct works *works, struct json *json) {
    json_open(json, '{');
    json_open_at(json, "works", '[');
    pthread_mutex_lock(&works->lock);
    for (const struct work *work = works->first; work; work = work->next) {
        if (!work->id)
            continue;
        json_open(json, '{');
        json_string_at(json, "id", work->id);
        json_string_at(json, "what", work->what);
        json_number_at(json, "done", work->done);
        json_number_at(json, "total", work->total);
        json_close(json, '}');
    }
    pthread_mutex_unlock(&works->lock);
    json_close(json, ']');
    json_close(json, '}');
}
