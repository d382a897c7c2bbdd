#include "fleet/push.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vector.h"

#define WAIT_MOST 60 // seconds
#define REFUSALS  3  // of the same interval, before it is dropped

struct pusher {
    struct store_settings settings;
    const struct store_kind *kind;
    struct store *store;
    struct spool spool;
    char *label;
    bool is_quiet;
    pthread_t thread;

    pthread_mutex_t lock; // protects what follows
    pthread_cond_t changed;
    char **names; // of the intervals that wait, from `first` on
    size_t name_count, first;
    struct push_counts counts;
    uint64_t taken_away; // dropped by another exporter that shares the spool
    bool is_finishing, is_done;
};

static void say(const struct pusher *pusher, const char *what, const char *reason) {
    if (!pusher->is_quiet)
        fprintf(stderr, "quern: %s %s%s%s\n", what, pusher->label, reason ? ": " : "",
                reason ? reason : "");
}

// ---- the thread --------------------------------------------------------------------------------

// How an attempt went. May wait for the store; nothing is locked.
enum attempt { ATTEMPT_DONE, ATTEMPT_GONE, ATTEMPT_FAILED, ATTEMPT_REFUSED };

static enum attempt attempt(struct pusher *pusher, const char *name, bool may_be_there,
                            char **problem) {
    struct batch batch;
    if (!batch_read(&batch, pusher->spool.folder, name)) {
        if (errno == ENOENT)
            return ATTEMPT_GONE;
        *problem = base_copy("the interval in the spool is damaged");
        return ATTEMPT_REFUSED;
    }
    enum push_result result = pusher->kind->push(pusher->store, &batch, may_be_there, problem);
    batch_free(&batch);
    return result == PUSH_DONE      ? ATTEMPT_DONE
           : result == PUSH_REFUSED ? ATTEMPT_REFUSED
                                    : ATTEMPT_FAILED;
}

// Whether there is an interval to push, to which *name leads then. With the lock.
static bool next_name(struct pusher *pusher, char **name) {
    while (pusher->first == pusher->name_count && !pusher->is_finishing)
        pthread_cond_wait(&pusher->changed, &pusher->lock);
    if (pusher->first == pusher->name_count)
        return false;
    *name = pusher->names[pusher->first];
    return true;
}

static void wait_until(struct pusher *pusher, unsigned seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    // Exporters that failed together do not all come back together.
    until.tv_nsec += rand() % 1000 * 1000000L;
    until.tv_sec += seconds + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!pusher->is_finishing &&
           pthread_cond_timedwait(&pusher->changed, &pusher->lock, &until) != ETIMEDOUT)
        continue;
}

// Notes how it went. True: this interval is over. With the lock.
static bool note(struct pusher *pusher, enum attempt how, const char *problem, bool is_last_time) {
    struct push_counts *counts = &pusher->counts;
    if (how == ATTEMPT_DONE || how == ATTEMPT_FAILED) {
        bool was_up = counts->is_up;
        counts->is_up = how == ATTEMPT_DONE;
        if (counts->is_up && !was_up && counts->failures)
            say(pusher, "pushing again to", NULL);
        else if (!counts->is_up && (was_up || !counts->failures))
            say(pusher, "cannot push to", problem);
    }
    if (how == ATTEMPT_REFUSED)
        say(pusher,
            is_last_time ? "an interval is dropped, refused by" : "an interval is refused by",
            problem);
    counts->pushed += how == ATTEMPT_DONE;
    counts->failures += how == ATTEMPT_FAILED || how == ATTEMPT_REFUSED;
    pusher->taken_away += how == ATTEMPT_GONE;
    counts->dropped += how == ATTEMPT_REFUSED && is_last_time;
    return how == ATTEMPT_DONE || how == ATTEMPT_GONE || (how == ATTEMPT_REFUSED && is_last_time);
}

static void *push_all(void *context) {
    struct pusher *pusher = context;
    unsigned wait = 1, refusals = 0;
    bool may_be_there = false;
    char *name;
    pthread_mutex_lock(&pusher->lock);
    while (next_name(pusher, &name)) {
        char *problem = NULL;
        bool was_finishing = pusher->is_finishing;
        pthread_mutex_unlock(&pusher->lock);
        enum attempt how = attempt(pusher, name, may_be_there, &problem);
        pthread_mutex_lock(&pusher->lock);
        refusals = how == ATTEMPT_REFUSED ? refusals + 1 : 0;
        bool is_over = note(pusher, how, problem, refusals >= REFUSALS);
        free(problem);
        may_be_there = !is_over;
        if (is_over) {
            if (how != ATTEMPT_GONE)
                spool_remove(&pusher->spool, name);
            free(name);
            pusher->first++;
            wait = 1;
            refusals = 0;
        } else if (was_finishing && how == ATTEMPT_FAILED) {
            break;
        } else {
            wait_until(pusher, wait);
            wait = wait * 2 < WAIT_MOST ? wait * 2 : WAIT_MOST;
        }
    }
    pusher->is_done = true;
    pthread_cond_broadcast(&pusher->changed);
    pthread_mutex_unlock(&pusher->lock);
    return NULL;
}

// ---- for the exporter --------------------------------------------------------------------------

struct pusher *pusher_start(const struct store_settings *settings, const struct spool *spool,
                            bool is_quiet, char **problem) {
    const struct store_kind *kind = store_kind_of(settings->url, problem);
    struct store *store = kind ? kind->open(settings, problem) : NULL;
    if (!store)
        return NULL;
    struct pusher *pusher = base_allocate(sizeof *pusher);
    *pusher = (struct pusher){.settings = *settings,
                              .kind = kind,
                              .store = store,
                              .spool = *spool,
                              .label = store_label(settings->url),
                              .is_quiet = is_quiet};
    pthread_mutex_init(&pusher->lock, NULL);
    pthread_cond_init(&pusher->changed, NULL);
    if (pthread_create(&pusher->thread, NULL, push_all, pusher) == 0)
        return pusher;
    *problem = base_copy("no thread can be started");
    return NULL;
}

void pusher_add(struct pusher *pusher, struct batch *batch) {
    uint64_t dropped;
    int error;
    char *name = spool_put(&pusher->spool, batch, &dropped, &error);
    if (!name)
        say(pusher, "an interval is dropped: it cannot be stored on its way to", strerror(error));
    pthread_mutex_lock(&pusher->lock);
    pusher->counts.made++;
    pusher->counts.dropped += dropped + !name;
    if (name)
        *vector_push(pusher->names, pusher->name_count) = name;
    pthread_cond_broadcast(&pusher->changed);
    pthread_mutex_unlock(&pusher->lock);
    batch_free(batch);
}

struct push_counts pusher_counts(struct pusher *pusher) {
    pthread_mutex_lock(&pusher->lock);
    struct push_counts counts = pusher->counts;
    for (size_t i = pusher->first; i < pusher->name_count; i++)
        counts.waiting += faccessat(pusher->spool.folder, pusher->names[i], F_OK, 0) == 0;
    pthread_mutex_unlock(&pusher->lock);
    counts.spool_bytes = spool_bytes(&pusher->spool);
    return counts;
}

uint64_t pusher_lost(struct pusher *pusher) {
    pthread_mutex_lock(&pusher->lock);
    uint64_t lost = pusher->counts.dropped + pusher->taken_away;
    pthread_mutex_unlock(&pusher->lock);
    return lost;
}

void pusher_finish(struct pusher *pusher, unsigned seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&pusher->lock);
    pusher->is_finishing = true;
    pthread_cond_broadcast(&pusher->changed);
    while (!pusher->is_done &&
           pthread_cond_timedwait(&pusher->changed, &pusher->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&pusher->lock);
}

void pusher_report(struct pusher *pusher) {
    struct push_counts counts = pusher_counts(pusher);
    if (!counts.waiting && !counts.dropped)
        return;
    fprintf(stderr, "quern: of %llu intervals, %llu are in %s; dropped: %llu",
            (unsigned long long)counts.made, (unsigned long long)counts.pushed, pusher->label,
            (unsigned long long)counts.dropped);
    if (counts.waiting)
        fprintf(stderr, "; %llu wait in %s (quern push --push=URL %s/*" SPOOL_END ")",
                (unsigned long long)counts.waiting, pusher->spool.path, pusher->spool.path);
    fputc('\n', stderr);
}
