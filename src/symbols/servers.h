/*
 * servers: debug files from debuginfod servers ($DEBUGINFOD_URLS).
 *
 * A server may be slow. Behind a firewall, it may not answer at all. So another process, the
 * *asker*, speaks with the servers. It learns of each object when that is mapped, and fetches the
 * debug files that this machine lacks, beside the run and before names are needed. If a name is
 * needed earlier, servers_find waits for the asker: for two seconds in all, however many files
 * there are. Then the run goes on without what has not arrived. It says so once, and leaves a note
 * in the cache folder: for ten minutes, runs do not wait for servers that never answered.
 *
 * Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_SERVERS_H
#define QUERN_SYMBOLS_SERVERS_H

#include "symbols/symbols.h"

struct servers;

/* Starts the asker. NULL: servers are not wanted, none is named, or they cannot be asked. */
struct servers *servers_new(const struct symbols_options *options);
void servers_free(struct servers *servers);

/* An object was mapped: its debug file may be needed. */
void servers_expect(struct servers *servers, const char *path);
/*
 * The debug file with this build-id: an open descriptor, and its path, which the caller frees, in
 * *found_name; or -1. `object` is shown to the user, who may have to wait.
 */
int servers_find(struct servers *servers, const uint8_t *id, size_t id_size, const char *object,
                 char **found_name);

#endif
