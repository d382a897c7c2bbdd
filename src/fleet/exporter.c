#include "fleet/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ORDER_MOST 8192 // bytes
// After the run. What is not done by then stays undone.
#define END_SECONDS 10

// ---- followers ---------------------------------------------------------------------------------

// A process that executes another program is followed once more, under the same number.
struct follower *exporter_take(struct exporter *exporter, int pid) {
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = exporter->follower_count; pid && i-- > 0;)
        if (exporter->followers[i]->pid == pid)
            return exporter->followers[i];
    return pid || !exporter->follower_count ? NULL : exporter->followers[0];
}

void exporter_leave(struct exporter *exporter) {
    pthread_mutex_unlock(&exporter->lock);
}

static void begin(struct exporter *exporter, int pid, const char *path) {
    pthread_mutex_lock(&exporter->lock);
    struct follower *follower =
        exporter->follower_count < EXPORTER_PROCESSES ? follower_start(pid, path) : NULL;
    if (follower) {
        exporter->followers[exporter->follower_count++] = follower;
        exporter->processes++;
    } else {
        exporter->passed_over++;
    }
    pthread_mutex_unlock(&exporter->lock);
}

static void finish_following(struct exporter *exporter, int pid) {
    struct follower *follower = exporter_take(exporter, pid);
    if (follower)
        follower_finish(follower);
    exporter_leave(exporter);
}

static void note_lost(struct exporter *exporter, int pid, uint64_t bytes, uint64_t blocks) {
    struct follower *follower = exporter_take(exporter, pid);
    if (follower) {
        pthread_mutex_lock(&follower->lock);
        follower->is_searched = true;
        follower->lost_bytes = bytes;
        follower->lost_blocks = blocks;
        pthread_mutex_unlock(&follower->lock);
    }
    exporter_leave(exporter);
}

// Forgets processes that have ended. The numbers of the last one stay until another comes.
static void forget_done(struct exporter *exporter) {
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = 0; i < exporter->follower_count && exporter->follower_count > 1;) {
        struct follower *follower = exporter->followers[i];
        if (!follower_is_done(follower)) {
            i++;
            continue;
        }
        if (follower->problem)
            fprintf(stderr, "quern: process %d is not exported: '%s' cannot be followed: %s\n",
                    follower->pid, follower->path, follower->problem);
        follower_free(follower);
        memmove(&exporter->followers[i], &exporter->followers[i + 1],
                (--exporter->follower_count - i) * sizeof *exporter->followers);
    }
    pthread_mutex_unlock(&exporter->lock);
}

static bool all_done(struct exporter *exporter) {
    bool are_done = true;
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = 0; i < exporter->follower_count; i++)
        are_done &= follower_is_done(exporter->followers[i]);
    pthread_mutex_unlock(&exporter->lock);
    return are_done;
}

static bool all_ended(struct exporter *exporter) {
    bool have_ended = true;
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = 0; i < exporter->follower_count; i++) {
        pthread_mutex_lock(&exporter->followers[i]->lock);
        have_ended &= exporter->followers[i]->writer_ended;
        pthread_mutex_unlock(&exporter->followers[i]->lock);
    }
    pthread_mutex_unlock(&exporter->lock);
    return have_ended;
}

// ---- orders ------------------------------------------------------------------------------------

// False: the exporter is to finish.
static bool obey(struct exporter *exporter, const char *order) {
    int pid = 0, path = 0;
    unsigned long long bytes, blocks;
    if (sscanf(order, "follow %d %n", &pid, &path) == 1 && path) {
        begin(exporter, pid, order + path);
    } else if (sscanf(order, "lost %d %llu %llu", &pid, &bytes, &blocks) == 3) {
        note_lost(exporter, pid, bytes, blocks);
    } else if (sscanf(order, "ended %d", &pid) == 1) {
        finish_following(exporter, pid);
    } else if (strcmp(order, "finish") == 0) {
        if (all_ended(exporter))
            return false;
        send(exporter->orders, "later", 5, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return true;
}

// Takes the next order, if one comes within this time. False: there will be no more.
static bool take_order(struct exporter *exporter, int milliseconds) {
    char order[ORDER_MOST];
    struct pollfd coming = {.fd = exporter->orders, .events = POLLIN};
    if (poll(&coming, 1, milliseconds) <= 0)
        return true;
    ssize_t size = recv(exporter->orders, order, sizeof order - 1, 0);
    if (size <= 0)
        return size < 0 && errno == EINTR;
    order[size] = 0;
    return obey(exporter, order);
}

// ---- the process -------------------------------------------------------------------------------

// Signals from the terminal are for the target. The supervisor's end is seen by its socket.
static void settle(void) {
    sigset_t none;
    const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 2; fd++)
        dup2(null, fd);
    prctl(PR_SET_NAME, "quern-exporter");
    setpriority(PRIO_PROCESS, 0, 10);
}

static void finish(struct exporter *exporter) {
    alarm(END_SECONDS);
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = 0; i < exporter->follower_count; i++)
        follower_finish(exporter->followers[i]);
    pthread_mutex_unlock(&exporter->lock);
    while (!all_done(exporter))
        poll(NULL, 0, 10);
    for (size_t i = 0; i < exporter->follower_count; i++)
        if (exporter->followers[i]->problem)
            fprintf(stderr, "quern: process %d is not exported: '%s' cannot be followed: %s\n",
                    exporter->followers[i]->pid, exporter->followers[i]->path,
                    exporter->followers[i]->problem);
    if (exporter->passed_over)
        fprintf(stderr, "quern: %llu processes were not exported: more than %d ran at once\n",
                (unsigned long long)exporter->passed_over, EXPORTER_PROCESSES);
}

void exporter_run(struct exporter *exporter, int listening) {
    settle();
    pthread_mutex_init(&exporter->lock, NULL);
    if (listening >= 0 && !serve_start(exporter, listening))
        fputs("quern: nobody answers at --metrics-port: no thread can be started\n", stderr);
    while (take_order(exporter, 1000))
        forget_done(exporter);
    finish(exporter);
    // Threads may still answer; nothing needs an orderly end.
    _exit(0);
}
