#include "fleet/follower.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

// A recorder writes what it has once a second.
#define LOOK_MILLISECONDS 250

struct reading {
    struct follower *follower;
    int fd;
    ino_t inode;
    struct recording_chunk first; // the head of the first chunk, as it was
    bool is_replaced;
    bool was_last; // the writer had ended before the file was read to its end
};

static void sleep_unlocked(struct follower *follower) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MILLISECONDS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&follower->changed, &follower->lock, &until);
}

static struct recording_chunk first_chunk(int fd) {
    struct recording_chunk chunk = {0};
    ssize_t size = pread(fd, &chunk, sizeof chunk, sizeof(struct recording_header));
    return size == sizeof chunk ? chunk : (struct recording_chunk){0};
}

// Whether what has been read does not hold any more: a merged recording takes the name of the old
// one, and the second chunk of a recording takes the place of the first.
static bool look_at_file(struct reading *reading) {
    struct stat named, own;
    if (fstat(reading->fd, &own) == 0)
        reading->follower->size = (uint64_t)own.st_size;
    struct recording_chunk first = first_chunk(reading->fd);
    return memcmp(&first, &reading->first, sizeof first) != 0 ||
           (stat(reading->follower->path, &named) == 0 && named.st_ino != reading->inode);
}

static bool wait_for_more(void *context) {
    struct reading *reading = context;
    struct follower *follower = reading->follower;
    reading->is_replaced = look_at_file(reading);
    if (reading->is_replaced || reading->was_last)
        return false;
    if (follower->writer_ended)
        reading->was_last = true;
    else
        sleep_unlocked(follower);
    return true;
}

// Reads the file that the path leads to. True: another one has taken its place.
static bool read_file(struct follower *follower) {
    struct stat status;
    struct reading reading = {.follower = follower,
                              .fd = open(follower->path, O_RDONLY | O_CLOEXEC)};
    if (reading.fd < 0 || fstat(reading.fd, &status) != 0) {
        follower->problem = base_copy(strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        follower->problem = base_copy("it is not a regular file");
    } else {
        if (follower->is_open)
            heap_file_free(&follower->file);
        follower->edition++;
        follower->is_open = true;
        reading.inode = status.st_ino;
        reading.first = first_chunk(reading.fd);
        struct recording_wait wait = {&reading, wait_for_more};
        follower->problem = heap_file_follow(reading.fd, &follower->file, &wait);
        if (!follower->problem && follower->file.info.damage)
            follower->problem = base_copy(follower->file.info.damage);
        reading.is_replaced |= look_at_file(&reading);
    }
    if (reading.fd >= 0)
        close(reading.fd);
    if (reading.is_replaced) {
        free(follower->problem);
        follower->problem = NULL;
    }
    return reading.is_replaced;
}

static void *follow(void *context) {
    struct follower *follower = context;
    pthread_mutex_lock(&follower->lock);
    while (read_file(follower))
        continue;
    follower->is_done = true;
    pthread_mutex_unlock(&follower->lock);
    return NULL;
}

struct follower *follower_start(int pid, const char *path) {
    struct follower *follower = base_allocate(sizeof *follower);
    pthread_condattr_t clock;
    *follower = (struct follower){.pid = pid, .path = base_copy(path)};
    pthread_mutex_init(&follower->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&follower->changed, &clock);
    if (pthread_create(&follower->thread, NULL, follow, follower) == 0)
        return follower;
    free(follower->path);
    free(follower);
    return NULL;
}

void follower_finish(struct follower *follower) {
    pthread_mutex_lock(&follower->lock);
    follower->writer_ended = true;
    pthread_cond_signal(&follower->changed);
    pthread_mutex_unlock(&follower->lock);
}

bool follower_is_done(struct follower *follower) {
    pthread_mutex_lock(&follower->lock);
    bool is_done = follower->is_done;
    pthread_mutex_unlock(&follower->lock);
    return is_done;
}

void follower_free(struct follower *follower) {
    pthread_join(follower->thread, NULL);
    if (follower->is_open)
        heap_file_free(&follower->file);
    pthread_mutex_destroy(&follower->lock);
    pthread_cond_destroy(&follower->changed);
    free(follower->problem);
    free(follower->path);
    free(follower);
}
