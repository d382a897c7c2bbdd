// A recording that is read while it is being written, by a thread of its own.
//
// The lock protects everything behind it. The thread holds it while it reads a chunk and lets go
// where the file ends. So whoever takes it finds sums that belong together.
#ifndef QUERN_FLEET_FOLLOWER_H
#define QUERN_FLEET_FOLLOWER_H

#include <pthread.h>
#include <stdbool.h>

#include "report/heap/file.h"

struct follower {
    int pid;
    char *path;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct heap_file file;
    bool is_open;      // `file` can be asked
    unsigned edition;  // counts the files read: a bounded recording is replaced by a shorter one
    uint64_t size;     // of the recording, in bytes
    bool writer_ended; // nobody writes it any more: what is there is all
    bool is_done;      // everything has been read
    char *problem;     // why it cannot be followed; NULL: it can
    struct interval_maker *maker; // the exporter's; NULL: nothing is pushed
    bool has_last;                // its last interval is made
    // What the latest search for leaks found lost.
    bool is_searched;
    uint64_t lost_bytes, lost_blocks;
};

// NULL: there can be no thread.
struct follower *follower_start(int pid, const char *path);
// Tells it that the writer has ended.
void follower_finish(struct follower *follower);
bool follower_is_done(struct follower *follower);
// Waits until it is done. follower_finish comes first.
void follower_free(struct follower *follower);

#endif
