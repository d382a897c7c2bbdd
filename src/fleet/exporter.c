#include "fleet/exporter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/interval.h"
#include "fleet/settings.h"

#define ORDER_MOST 8192 // bytes
// After the run. What is not done by then stays undone.
#define END_SECONDS  10
#define PUSH_SECONDS 7 // of these

static struct timespec now_of_day(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

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
        if (exporter->pusher)
            follower->maker = interval_maker_new(pid, &exporter->identity, now_of_day());
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

// Makes the intervals that are due: of all processes, or of those that have ended.
static void make_intervals(struct exporter *exporter, bool are_due) {
    pthread_mutex_lock(&exporter->lock);
    for (size_t i = 0; exporter->pusher && i < exporter->follower_count; i++) {
        struct follower *follower = exporter->followers[i];
        struct batch batch;
        pthread_mutex_lock(&follower->lock);
        bool is_last = follower->is_done;
        bool is_made = !follower->has_last && (are_due || is_last) &&
                       interval_make(follower->maker, follower, pusher_lost(exporter->pusher),
                                     is_last, now_of_day(), &batch);
        follower->has_last |= is_last;
        pthread_mutex_unlock(&follower->lock);
        if (is_made)
            pusher_add(exporter->pusher, &batch);
    }
    pthread_mutex_unlock(&exporter->lock);
}

static void complain_of(const struct follower *follower) {
    if (follower->problem)
        fprintf(stderr, "quern: process %d is not exported: '%s' cannot be followed: %s\n",
                follower->pid, follower->path, follower->problem);
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
        complain_of(follower);
        interval_maker_free(follower->maker);
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
        send(FLEET_ORDERS, "later", 5, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return true;
}

// Takes the next order, if one comes within this time. False: there will be no more.
static bool take_order(struct exporter *exporter, int milliseconds) {
    char order[ORDER_MOST];
    struct pollfd coming = {.fd = FLEET_ORDERS, .events = POLLIN};
    if (poll(&coming, 1, milliseconds) <= 0)
        return true;
    ssize_t size = recv(FLEET_ORDERS, order, sizeof order - 1, 0);
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
    make_intervals(exporter, false);
    for (size_t i = 0; i < exporter->follower_count; i++)
        complain_of(exporter->followers[i]);
    if (exporter->pusher) {
        pusher_finish(exporter->pusher, PUSH_SECONDS);
        pusher_report(exporter->pusher);
    }
    if (exporter->passed_over)
        fprintf(stderr, "quern: %llu processes were not exported: more than %d ran at once\n",
                (unsigned long long)exporter->passed_over, EXPORTER_PROCESSES);
}

// The first interval is shorter, by chance: processes that begin together do not push together.
static int64_t first_due(const struct exporter *exporter) {
    srand((unsigned)(clock_nanoseconds() ^ (uint64_t)getpid() << 16));
    return clock_milliseconds() + rand() % (int)(exporter->settings.push_interval * 1000 + 1);
}

// ---- starting ----------------------------------------------------------------------------------

static char *listen_problem(const char *where, const char *reason) {
    struct text text = {0};
    text_format(&text, "cannot listen at --metrics-port=%s: %s", where, reason);
    return text_take(&text);
}

// NULL, or the problem.
static char *start_serving(struct exporter *exporter) {
    const char *where = exporter->settings.listen;
    if (!where)
        return NULL;
    if (!listen_parse(where, &exporter->address))
        return listen_problem(where, "give [ADDRESS:]PORT with a numeric address");
    int fd = listen_open(&exporter->address);
    if (fd < 0)
        return listen_problem(where, strerror(errno));
    return serve_start(exporter, fd) ? NULL : listen_problem(where, "no thread can be started");
}

static char *try_to_push(struct exporter *exporter) {
    const struct fleet_settings *settings = &exporter->settings;
    struct store_settings store = {.url = settings->push, .keep_days = settings->keep_days};
    struct spool spool;
    char *folder = settings->spool ? base_copy(settings->spool) : spool_default();
    char *problem = store_credentials(&store, settings->credentials);
    if (!problem)
        problem = spool_open(&spool, folder, settings->spool_size);
    if (!problem)
        exporter->pusher = pusher_start(&store, &spool, settings->is_quiet, &problem);
    free(folder);
    return problem;
}

static char *start_pushing(struct exporter *exporter) {
    char *problem = exporter->settings.push ? try_to_push(exporter) : NULL;
    if (!problem)
        return NULL;
    struct text text = {0};
    char *label = store_label(exporter->settings.push);
    text_format(&text, "cannot push to %s: %s", label, problem);
    free(label);
    free(problem);
    return text_take(&text);
}

// Tells the supervisor how the start went. Takes the problem.
static bool answer(const struct exporter *exporter, char *problem) {
    struct text text = {0};
    bool is_six = strchr(exporter->address.host, ':') != NULL;
    text_string(&text, problem ? "problem " : "ready");
    if (problem)
        text_string(&text, problem);
    else if (exporter->settings.listen)
        text_format(&text, " http://%s%s%s:%u/", is_six ? "[" : "", exporter->address.host,
                    is_six ? "]" : "", exporter->address.port);
    bool is_sent = send(FLEET_ORDERS, text.bytes, text.size, MSG_NOSIGNAL) >= 0;
    text_free(&text);
    free(problem);
    return is_sent;
}

static bool start(struct exporter *exporter) {
    static char packet[ORDER_MOST * 4];
    ssize_t size = recv(FLEET_ORDERS, packet, sizeof packet - 1, 0);
    struct exporter_settings settings = settings_read(packet, size > 0 ? (size_t)size : 0);
    *exporter = (struct exporter){.settings = settings.asked, .supervisor = settings.supervisor};
    pthread_mutex_init(&exporter->lock, NULL);
    exporter->identity = identity_make(&exporter->settings);
    char *problem = start_serving(exporter);
    if (!problem)
        problem = start_pushing(exporter);
    bool is_fine = !problem;
    return answer(exporter, problem) && is_fine;
}

int exporter_run(void) {
    struct exporter exporter;
    settle();
    if (!start(&exporter))
        _exit(1);
    int64_t due = first_due(&exporter);
    for (;;) {
        int64_t left = due - clock_milliseconds();
        if (!take_order(&exporter, left > 1000 ? 1000 : left > 0 ? (int)left : 0))
            break;
        bool are_due = clock_milliseconds() >= due;
        make_intervals(&exporter, are_due);
        if (are_due)
            due = clock_milliseconds() + exporter.settings.push_interval * 1000LL;
        forget_done(&exporter);
    }
    finish(&exporter);
    // Threads may still answer; nothing needs an orderly end.
    _exit(0);
}
