#include "supervisor/readiness.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "supervisor/job.h"
#include "supervisor/log.h"

enum { LOOK_MS = 50, LOOK_AGAIN_MS = 500, LISTENERS_MOST = 256 };

// ---- ports -------------------------------------------------------------------------------------

// Whether one of those who listen belongs to the target, or will: the target may inherit a socket.
static bool is_of_target(const struct job *job, const int *pids, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (pids[i] == getpid() || listener_descends(pids[i], job->main_pid) ||
            followed_find(&job->processes, pids[i]))
            return true;
    return false;
}

// Whether the target has this port. Somebody else may have taken it since readiness_may_begin
// looked. Where nobody is known to have it (another user's process, say), the port speaks for
// itself.
static bool target_has(struct readiness *readiness, enum listener_kind kind, int port,
                       const char *option) {
    int pids[LISTENERS_MOST];
    size_t count = listener_processes(kind, port, pids, LISTENERS_MOST);
    readiness->stranger = count && !is_of_target(readiness->job, pids, count) ? pids[0] : 0;
    readiness->stranger_option = option;
    readiness->stranger_kind = kind;
    return !readiness->stranger;
}

// False after a message: another process has the port.
static bool is_free(const struct job *job, enum listener_kind kind, int port, const char *option) {
    if (!port || !listener_is_used(kind, port))
        return true;
    int pids[LISTENERS_MOST];
    size_t count = listener_processes(kind, port, pids, LISTENERS_MOST);
    if (is_of_target(job, pids, count))
        return true;
    struct text text = {0};
    if (count)
        listener_name(&text, pids[0]);
    log_complain("%s=%d: %s already %s there; end it, or let the program use another port", option,
                 port, count ? text.bytes : "another process", listener_verb(kind));
    text_free(&text);
    return false;
}

// ---- files and sockets -------------------------------------------------------------------------

static bool is_same_time(const struct timespec *left, const struct timespec *right) {
    return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

// A socket appears before anybody listens on it.
static bool socket_accepts(const char *path) {
    static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return true; // by another name, which is not known
    strcpy(address.sun_path, path);
    bool accepts = false;
    for (size_t i = 0; !accepts && i < sizeof types / sizeof *types; i++) {
        int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        accepts = fd >= 0 && (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ||
                              errno == EAGAIN);
        if (fd >= 0)
            close(fd);
    }
    return accepts;
}

// A file of an earlier run does not count until it is written anew.
static bool has_appeared(const struct readiness *readiness) {
    const char *path = readiness->settings->path;
    const struct stat *before = &readiness->before;
    struct stat now;
    if (stat(path, &now) < 0)
        return false;
    if (readiness->was_there && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
        is_same_time(&now.st_ctim, &before->st_ctim))
        return false;
    return !S_ISSOCK(now.st_mode) || socket_accepts(path);
}

// ---- all of them -------------------------------------------------------------------------------

bool readiness_may_begin(struct readiness *readiness, const struct scenario_settings *settings,
                         const struct job *job) {
    *readiness = (struct readiness){.settings = settings, .job = job};
    http_probe_init(&readiness->page);
    char *error = settings->url ? http_probe_begin(&readiness->page, settings->url) : NULL;
    if (error) {
        log_complain("%s", error);
        free(error);
        return false;
    }
    readiness->was_there = settings->path && stat(settings->path, &readiness->before) == 0;
    return is_free(job, LISTENER_TCP, settings->port, "--ready-port") &&
           is_free(job, LISTENER_UDP, settings->udp_port, "--ready-udp-port") &&
           is_free(job, LISTENER_TCP, readiness->page.local_port, "--ready-url, port");
}

static bool url_answers(struct readiness *readiness) {
    int port = readiness->page.local_port;
    return http_probe_look(&readiness->page) &&
           (!port || target_has(readiness, LISTENER_TCP, port, "--ready-url"));
}

bool readiness_look(struct readiness *readiness) {
    const struct scenario_settings *settings = readiness->settings;
    int port = settings->port, udp_port = settings->udp_port;
    return (port && listener_is_used(LISTENER_TCP, port) &&
            target_has(readiness, LISTENER_TCP, port, "--ready-port")) ||
           (udp_port && listener_is_used(LISTENER_UDP, udp_port) &&
            target_has(readiness, LISTENER_UDP, udp_port, "--ready-udp-port")) ||
           (settings->path && has_appeared(readiness)) || (settings->url && url_answers(readiness));
}

int readiness_pause(const struct readiness *readiness) {
    return readiness->stranger ? LOOK_AGAIN_MS : LOOK_MS;
}

void readiness_explain(const struct readiness *readiness, struct text *text) {
    const struct scenario_settings *settings = readiness->settings;
    if (readiness->stranger) {
        text_format(text, "%s: ", readiness->stranger_option);
        listener_name(text, readiness->stranger);
        text_format(text, " %s there; it does not belong to the program",
                    listener_verb(readiness->stranger_kind));
        return;
    }
    text_string(text, "the program ");
    if (settings->port)
        text_string(text, "does not accept connections on --ready-port");
    else if (settings->udp_port)
        text_string(text, "does not use --ready-udp-port");
    else if (settings->path)
        text_format(text, "has not made --ready-path=%s", settings->path);
    else if (settings->url && readiness->page.status)
        text_format(text, "answers --ready-url with status %d", readiness->page.status);
    else if (settings->url)
        text_string(text, "does not answer --ready-url");
    else
        text_string(text, "has not printed what --ready-log waits for");
    text_format(text, " after %ld s; --ready-timeout=SECONDS waits longer", settings->timeout);
}

void readiness_end(struct readiness *readiness) {
    http_probe_end(&readiness->page);
}
