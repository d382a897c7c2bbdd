#include "base/progress.h"

#include <stddef.h>

static _Thread_local const struct progress_watcher *watched_by;
static _Thread_local const char *stage;
static _Thread_local uint64_t stage_done, stage_total;
static _Thread_local bool is_cancelled;

void progress_watch(const struct progress_watcher *watcher) {
    watched_by = watcher;
    stage = NULL;
    is_cancelled = false;
}

const struct progress_watcher *progress_watcher(void) {
    return watched_by;
}

void progress_stage(const char *what, uint64_t total) {
    stage = what;
    stage_total = total;
    progress_at(0);
}

bool progress_at(uint64_t done) {
    stage_done = done;
    if (watched_by && stage && !watched_by->see(watched_by->context, stage, done, stage_total))
        is_cancelled = true;
    return !is_cancelled;
}

bool progress_is_cancelled(void) {
    return !progress_at(stage_done);
}

void progress_end(void) {
    if (watched_by && stage)
        watched_by->see(watched_by->context, NULL, 0, 0);
    stage = NULL;
}
