// The folder of intervals that no store has taken yet. Several exporters may share one: its bound
// is for all of them, and the oldest intervals go first.
#ifndef QUERN_FLEET_SPOOL_H
#define QUERN_FLEET_SPOOL_H

#include <stdint.h>

#include "fleet/batch.h"

#define SPOOL_END ".interval" // of the names of its files

struct spool {
    char *path;
    int folder;
    uint64_t most; // bytes
};

// Makes the folder, with those above it. NULL, or why it cannot be used, to be freed.
char *spool_open(struct spool *spool, const char *path, uint64_t most);
// The folder that is used unless another is given; to be freed.
char *spool_default(void);
// Stores an interval under a name, to be freed; NULL: it cannot be stored, for *error. *dropped
// gets the number of intervals that had to go for it.
char *spool_put(struct spool *spool, const struct batch *batch, uint64_t *dropped, int *error);
// Removes an interval. False: it was not there any more.
bool spool_remove(struct spool *spool, const char *name);
// The names of all intervals in the folder, in the order of their time; to be freed with each.
char **spool_list(const struct spool *spool, size_t *count);
// Bytes of all of them.
uint64_t spool_bytes(const struct spool *spool);

#endif
