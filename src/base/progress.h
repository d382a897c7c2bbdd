// How far a long task is, for whoever waits for it, and the way to cancel it.
//
// Words:
//   stage    what a task is doing now: a name ("reading run.quern") and how much there is to do
//   watcher  whoever waits: the terminal, a connection of the page's server. One per thread
//
// Code that may take long calls progress_stage and then progress_at, at least several times a
// second. Without a watcher both cost next to nothing. A task that progress_at asks to stop leaves
// what it has done in a state that can be freed, and reports PROGRESS_CANCELLED as its problem.
// Supervisor context; each thread has its own stage and watcher.
#ifndef QUERN_BASE_PROGRESS_H
#define QUERN_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_CANCELLED "cancelled"

struct progress_watcher {
    void *context;
    // The stage is `what`; `done` of `total` is done (total 0: not known). NULL: no stage any more.
    // False: the task shall stop.
    bool (*see)(void *context, const char *what, uint64_t done, uint64_t total);
};

// The watcher of this thread from now on; NULL: none. It must outlive its use.
void progress_watch(const struct progress_watcher *watcher);
// The watcher of this thread, for another thread that does a part of its task.
const struct progress_watcher *progress_watcher(void);
// Begins a stage, which ends the one before. The text must live until the next call.
void progress_stage(const char *what, uint64_t total);
// False: the task shall stop.
bool progress_at(uint64_t done);
// Whether the task was asked to stop, since the watcher was set.
bool progress_is_cancelled(void);
// Ends the stage.
void progress_end(void);

#endif
