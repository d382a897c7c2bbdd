// The supervisor's side: starts the exporter and sends it packets. The first holds the settings,
// "name=value" each with a NUL behind it; the exporter answers "ready", with the address where it
// listens, or "problem" and why it cannot work. Then come orders:
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

#define ANSWER_MOST 4096 // bytes
// The exporter bounds its own end; this is for one that does not get to it.
#define END_MILLISECONDS 15000

struct fleet {
    int orders;
    pid_t exporter;
};

static void add_setting(struct text *settings, const char *name, const char *value) {
    if (!value)
        return;
    text_format(settings, "%s=%s", name, value);
    text_char(settings, 0);
}

static void add_number(struct text *settings, const char *name, uint64_t number) {
    text_format(settings, "%s=%llu", name, (unsigned long long)number);
    text_char(settings, 0);
}

static bool send_packet(const struct fleet *fleet, struct text *packet) {
    ssize_t sent = send(fleet->orders, packet->bytes, packet->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    text_free(packet);
    return sent >= 0;
}

static bool send_settings(const struct fleet *fleet, const struct fleet_settings *settings) {
    struct text packet = {0};
    add_setting(&packet, "listen", settings->listen);
    add_setting(&packet, "push", settings->push);
    add_setting(&packet, "spool", settings->spool);
    add_setting(&packet, "credentials", settings->credentials);
    add_setting(&packet, "program", settings->program);
    add_setting(&packet, "service", settings->service);
    add_setting(&packet, "version", settings->service_version);
    add_number(&packet, "interval", settings->push_interval);
    add_number(&packet, "spool-size", settings->spool_size);
    add_number(&packet, "keep-days", settings->keep_days);
    add_number(&packet, "supervisor", (uint64_t)getpid());
    add_number(&packet, "quiet", settings->is_quiet);
    return send_packet(fleet, &packet);
}

// Runs in the child. The descriptors of a shell are not the exporter's.
_Noreturn static void become_exporter(const char *path, int orders) {
    dup2(orders, FLEET_ORDERS);
    close_range(FLEET_ORDERS + 1, ~0u, 0);
    execl(path, "quern-exporter", "run", NULL);
    _exit(127);
}

static struct fleet *start(const char *path) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return NULL;
    fflush(NULL);
    pid_t pid = fork();
    if (!pid)
        become_exporter(path, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return NULL;
    }
    struct fleet *fleet = base_allocate(sizeof *fleet);
    *fleet = (struct fleet){fd_move_high(ends[0]), pid};
    return fleet;
}

static void drop(struct fleet *fleet) {
    close(fleet->orders);
    waitpid(fleet->exporter, NULL, 0);
    free(fleet);
}

struct fleet *fleet_start(const struct fleet_settings *settings, char **problem) {
    char answer[ANSWER_MOST];
    struct fleet *fleet = start(settings->exporter);
    ssize_t size = fleet && send_settings(fleet, settings)
                       ? recv(fleet->orders, answer, sizeof answer - 1, 0)
                       : -1;
    // They are not the program's.
    unsetenv("QUERN_PUSH_USER");
    unsetenv("QUERN_PUSH_PASSWORD");
    answer[size > 0 ? size : 0] = 0;
    if (strncmp(answer, "ready", 5) != 0) {
        const char *reason = strncmp(answer, "problem ", 8) == 0 ? answer + 8 : NULL;
        *problem = base_copy(reason ? reason : "quern-exporter cannot be started");
        if (fleet)
            drop(fleet);
        return NULL;
    }
    if (answer[5] && !settings->is_quiet)
        fprintf(stderr, "quern: metrics and profiles at%s\n", answer + 5);
    *problem = NULL;
    return fleet;
}

void fleet_follow(struct fleet *fleet, int pid, const char *path) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "follow %d %s", pid, path);
    if (!send_packet(fleet, &order))
        fprintf(stderr, "quern: process %d is not exported: the exporter does not answer\n", pid);
}

void fleet_ended(struct fleet *fleet, int pid) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "ended %d", pid);
    send_packet(fleet, &order);
}

void fleet_lost(struct fleet *fleet, int pid, uint64_t bytes, uint64_t blocks) {
    struct text order = {0};
    if (!fleet)
        return;
    text_format(&order, "lost %d %llu %llu", pid, (unsigned long long)bytes,
                (unsigned long long)blocks);
    send_packet(fleet, &order);
}

void fleet_end(struct fleet *fleet) {
    struct text order = {0};
    if (!fleet)
        return;
    text_string(&order, "finish");
    struct pollfd later = {.fd = fleet->orders, .events = POLLIN};
    int64_t end = clock_milliseconds() + END_MILLISECONDS;
    if (send_packet(fleet, &order))
        while (clock_milliseconds() < end && poll(&later, 1, 100) == 0)
            continue;
    // Either it has ended, or it goes on by itself.
    waitpid(fleet->exporter, NULL, WNOHANG);
    close(fleet->orders);
    free(fleet);
}
