#include "view/windows.h"

#include "base/progress.h"

void windows_init(struct windows *windows) {
    *windows = (struct windows){0};
    pthread_mutex_init(&windows->lock, NULL);
    pthread_cond_init(&windows->changed, NULL);
}

static struct window *find(struct windows *windows, size_t file, struct document_window part) {
    for (size_t i = 0; i < WINDOWS; i++) {
        struct window *window = &windows->places[i];
        if (window->used && window->file == file && window->part.from == part.from &&
            window->part.to == part.to)
            return window;
    }
    return NULL;
}

// The place of the part that nobody has used for the longest time; NULL: all are in use.
static struct window *find_oldest(struct windows *windows) {
    struct window *oldest = NULL;
    for (size_t i = 0; i < WINDOWS; i++)
        if (!windows->places[i].users && (!oldest || windows->places[i].used < oldest->used))
            oldest = &windows->places[i];
    return oldest;
}

// Reads the part without the lock: others see that it is being read.
static struct window *open_part(struct windows *windows, struct window *window, const char *path) {
    struct document *before = window->document;
    window->document = NULL;
    pthread_mutex_unlock(&windows->lock);
    if (before)
        document_free(before);
    struct document *document = document_open(path, window->part, NULL);
    bool is_cancelled = progress_is_cancelled();
    if (is_cancelled)
        document_free(document);
    pthread_mutex_lock(&windows->lock);
    if (is_cancelled)
        *window = (struct window){0};
    else
        window->document = document;
    pthread_cond_broadcast(&windows->changed);
    return is_cancelled ? NULL : window;
}

struct window *windows_take(struct windows *windows, size_t file, const char *path,
                            struct document_window part) {
    struct window *window;
    pthread_mutex_lock(&windows->lock);
    for (;;) {
        window = find(windows, file, part);
        if (window && window->document) {
            window->users++;
            break;
        }
        struct window *oldest = window ? NULL : find_oldest(windows);
        if (oldest) {
            oldest->file = file;
            oldest->part = part;
            oldest->used = ++windows->uses;
            oldest->users = 1;
            window = open_part(windows, oldest, path);
            break;
        }
        pthread_cond_wait(&windows->changed, &windows->lock);
    }
    if (window)
        window->used = ++windows->uses;
    pthread_mutex_unlock(&windows->lock);
    return window;
}

void windows_leave(struct windows *windows, struct window *window) {
    pthread_mutex_lock(&windows->lock);
    window->users--;
    pthread_cond_broadcast(&windows->changed);
    pthread_mutex_unlock(&windows->lock);
}
