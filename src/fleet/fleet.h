// Exporting a run to the engines that a fleet of machines has: Prometheus and pprof ask a listener,
// stores for SQL are pushed to.
//
// Words
//   exporter   a program of its own beside the supervisor, quern-exporter, that does all of it. It
//              reads the recordings as they grow. So a slow store slows neither the target nor the
//              supervisor; the recording is the queue between them
//   interval   the profile of a recorded process for the time since its last interval
//   store      a database that intervals are pushed to
//   spool      a folder of intervals that no store has taken yet, bounded in size
//
// This header and fleet.c are all that the rest of Quern sees; the other files of this folder are
// the exporter's. The functions with a struct fleet run in the supervisor and never wait, but for
// fleet_end. They accept NULL: nothing is exported.
#ifndef QUERN_FLEET_FLEET_H
#define QUERN_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLEET_ORDERS 3 // the exporter's end of the socket

struct fleet_settings {
    const char *listen;          // [ADDRESS:]PORT of --metrics-port; NULL: nobody can ask
    const char *program;         // the main program's file
    const char *service;         // name of what runs here; NULL: the program's
    const char *service_version; // NULL: not known
    const char *push;            // URL of a store; NULL: nothing is pushed
    unsigned push_interval;      // seconds
    const char *spool;           // folder; NULL: the usual one
    uint64_t spool_size;         // bytes
    unsigned keep_days;          // that a store keeps rows; 0: for ever
    const char *credentials;     // file; NULL: the environment
    bool is_quiet;               // only failures are said
    const char *exporter;        // path of quern-exporter
};

struct fleet;

// Starts the exporter. NULL after *problem was set to why not, to be freed.
struct fleet *fleet_start(const struct fleet_settings *settings, char **problem);
// A process is being recorded in this file.
void fleet_follow(struct fleet *fleet, int pid, const char *path);
// Its recording is complete.
void fleet_ended(struct fleet *fleet, int pid);
// A search for leaks found this much lost in it.
void fleet_lost(struct fleet *fleet, int pid, uint64_t bytes, uint64_t blocks);
// The run is over: lets the exporter finish, for a bounded time, unless processes go on.
void fleet_end(struct fleet *fleet);

#endif
