// Makes the intervals of a followed process: what changed since the last one.
#ifndef QUERN_FLEET_INTERVAL_H
#define QUERN_FLEET_INTERVAL_H

#include "fleet/batch.h"
#include "fleet/follower.h"
#include "fleet/identity.h"

struct interval_maker;

// Of a process that is followed since this time.
struct interval_maker *interval_maker_new(int pid, const struct identity *identity,
                                          struct timespec since);
void interval_maker_free(struct interval_maker *maker);
// The next interval, up to this time. `dropped` is the number of intervals that were lost so far:
// when it has grown, the next interval describes everything once more. The caller holds the
// follower's lock; the batch is to be freed. False: nothing is known of the process yet.
bool interval_make(struct interval_maker *maker, const struct follower *follower, uint64_t dropped,
                   bool is_last, struct timespec now, struct batch *batch);

#endif
