// Inside the exporter: what its threads share. exporter.c is the process itself: it takes orders
// from the supervisor and owns the followers. serve.c answers HTTP by metrics.c and profile.c;
// interval.c makes intervals, which push.c brings to the store.
#ifndef QUERN_FLEET_EXPORTER_H
#define QUERN_FLEET_EXPORTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/listen.h"
#include "base/text.h"
#include "fleet/fleet.h"
#include "fleet/follower.h"
#include "fleet/identity.h"
#include "fleet/push.h"

// More processes at once are counted, not followed.
#define EXPORTER_PROCESSES 256

struct exporter {
    struct fleet_settings settings;
    struct identity identity;
    int supervisor; // pid
    struct listen_address address;
    struct pusher *pusher; // NULL: nothing is pushed

    pthread_mutex_t lock; // protects the list, not the followers
    struct follower *followers[EXPORTER_PROCESSES];
    size_t follower_count;
    uint64_t processes, passed_over; // followed so far; not followed, because there were too many
};

// Does what the supervisor asks for at FLEET_ORDERS. The exit status.
int exporter_run(void);

// The follower of a process; 0: of the one followed longest. NULL: there is none. It stays until
// exporter_leave.
struct follower *exporter_take(struct exporter *exporter, int pid);
void exporter_leave(struct exporter *exporter);

// Serves HTTP on the descriptor, by threads of its own. False: it cannot.
bool serve_start(struct exporter *exporter, int listening);

// Prometheus' text exposition.
void metrics_write(struct exporter *exporter, FILE *out);

// ---- profile.c ---------------------------------------------------------------------------------

// The sums of the stacks of a follower at one moment.
struct profile_base {
    unsigned edition;
    uint64_t time; // of the recording
    struct summary_site *sites;
    size_t count;
};
void profile_note(const struct follower *follower, struct profile_base *base);
// The heap as a gzip'ed pprof profile, as Go's runtime has it; since `base` unless that is NULL.
// The caller holds the follower's lock. False: the recording was replaced since then.
bool profile_heap(struct follower *follower, const struct profile_base *base, struct text *out);

#endif
