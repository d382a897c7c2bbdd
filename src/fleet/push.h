// The thread that brings intervals from the spool to the store, in their order. A store that does
// not take them is tried again after 1, 2, 4, ... seconds, at most a minute.
#ifndef QUERN_FLEET_PUSH_H
#define QUERN_FLEET_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "fleet/spool.h"
#include "fleet/store.h"

struct push_counts {
    uint64_t made, pushed;
    uint64_t dropped;  // by this exporter: no room in the spool, not written, refused by the store
    uint64_t failures; // attempts
    uint64_t waiting;  // in the spool, of this exporter
    uint64_t spool_bytes;
    bool is_up; // the last attempt succeeded
};

struct pusher;

// Takes over the spool. NULL after *problem was set.
struct pusher *pusher_start(const struct store_settings *settings, const struct spool *spool,
                            bool is_quiet, char **problem);
// Puts an interval into the queue; frees it.
void pusher_add(struct pusher *pusher, struct batch *batch);
struct push_counts pusher_counts(struct pusher *pusher);
// How many intervals are known to be lost, by whomever.
uint64_t pusher_lost(struct pusher *pusher);
// No more will come: tries everything once more, at once, for at most this long.
void pusher_finish(struct pusher *pusher, unsigned seconds);
// What became of the intervals, if not all are in the store.
void pusher_report(struct pusher *pusher);

#endif
