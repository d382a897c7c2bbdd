// The supervisor's side: starts the exporter and sends it orders, one packet each:
//   follow PID PATH     lost PID BYTES BLOCKS     ended PID     finish
// The exporter answers "finish" with "later" if it still has something to follow, and otherwise by
// ending.
#include "fleet/fleet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "fleet/exporter.h"

// The exporter bounds its own end; this is for one that does not get to it.
#define END_MILLISECONDS 15000

struct fleet {
    int orders;
    pid_t exporter;
};

static char *listen_problem(const char *where, const char *reason) {
    struct text text = {0};
    text_format(&text, "cannot listen at --metrics-port=%s: %s", where, reason);
    return text_take(&text);
}

static int start_listening(const struct fleet_settings *settings, struct listen_address *address,
                           char **problem) {
    if (!settings->listen)
        return -1;
    if (!listen_parse(settings->listen, address)) {
        *problem = listen_problem(settings->listen, "give [ADDRESS:]PORT with a numeric address");
        return -1;
    }
    int fd = fd_move_high(listen_open(address));
    if (fd < 0)
        *problem = listen_problem(settings->listen, strerror(errno));
    return fd;
}

static struct fleet *start(const struct fleet_settings *settings, struct listen_address address,
                           int listening, char **problem) {
    int ends[2];
    pid_t pid = -1, own = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        fflush(NULL);
        pid = fork();
    }
    if (pid < 0) {
        *problem = base_copy("the exporter cannot be started");
        return NULL;
    }
    if (!pid) {
        close(ends[0]);
        struct exporter *exporter = base_allocate(sizeof *exporter);
        *exporter = (struct exporter){.settings = *settings,
                                      .identity = identity_make(settings),
                                      .orders = ends[1],
                                      .supervisor = own,
                                      .address = address};
        exporter_run(exporter, listening);
    }
    close(ends[1]);
    struct fleet *fleet = base_allocate(sizeof *fleet);
    *fleet = (struct fleet){fd_move_high(ends[0]), pid};
    if (settings->listen && settings->verbosity >= 0)
        fprintf(stderr, "quern: metrics and profiles at http://%s%s%s:%u/\n",
                strchr(address.host, ':') ? "[" : "", address.host,
                strchr(address.host, ':') ? "]" : "", address.port);
    return fleet;
}

struct fleet *fleet_start(const struct fleet_settings *settings, char **problem) {
    struct listen_address address = {0};
    *problem = NULL;
    int listening = start_listening(settings, &address, problem);
    struct fleet *fleet = *problem ? NULL : start(settings, address, listening, problem);
    if (listening >= 0)
        close(listening);
    return fleet;
}

static bool send_order(const struct fleet *fleet, struct text *order) {
    ssize_t sent = send(fleet->orders, order->bytes, order->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    text_free(order);
    return sent >= 0;
}

void fleet_follow(struct fleet *fleet, int pid, const char *path) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "follow %d %s", pid, path);
    if (!send_order(fleet, &order))
        fprintf(stderr, "quern: process %d is not exported: the exporter does not answer\n", pid);
}

void fleet_ended(struct fleet *fleet, int pid) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "ended %d", pid);
    send_order(fleet, &order);
}

void fleet_lost(struct fleet *fleet, int pid, uint64_t bytes, uint64_t blocks) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "lost %d %llu %llu", pid, (unsigned long long)bytes,
                (unsigned long long)blocks);
    send_order(fleet, &order);
}

void fleet_end(struct fleet *fleet) {
    struct text order = {0};
    if (!fleet)
        return;
    text_string(&order, "finish");
    struct pollfd later = {.fd = fleet->orders, .events = POLLIN};
    int64_t end = clock_milliseconds() + END_MILLISECONDS;
    if (send_order(fleet, &order))
        while (clock_milliseconds() < end && poll(&later, 1, 100) == 0)
            continue;
    // Either it has ended, or it goes on by itself.
    waitpid(fleet->exporter, NULL, WNOHANG);
    close(fleet->orders);
    free(fleet);
}
