#include "cli/debug_client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/control.h"
#include "base/fd.h"
#include "base/remote.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/words.h"

// ---- the list ----------------------------------------------------------------------------------

static void add_line(struct debug_processes *list, int run, char *line) {
    char *rest = line;
    const char *pid = strsep(&rest, " ");
    const char *prefix = strsep(&rest, " ");
    if (!rest)
        return;
    *vector_push(list->at, list->count) = (struct debug_process){
        .pid = atoi(pid), .run = run, .prefix = base_copy(prefix), .command = base_copy(rest)};
}

// A supervisor hangs up without an answer if the request comes late, as on a busy machine.
static bool ask_for_list(int run, char *answer, size_t room) {
    enum { TRIES = 5 };
    int failure = EPIPE;
    answer[0] = 0;
    for (int i = 0; i < TRIES && !answer[0]; i++) {
        failure = control_ask(run, "processes", answer, room);
        if (failure && failure != EPIPE && failure != ECONNRESET)
            break;
    }
    return !failure && strncmp(answer, "ok", 2) == 0;
}

static void add_run(int run, void *context) {
    static char answer[65536];
    char *rest = answer;
    if (!ask_for_list(run, answer, sizeof answer))
        return;
    strsep(&rest, "\n");
    for (char *line; (line = strsep(&rest, "\n"));)
        add_line(context, run, line);
}

struct debug_processes debug_list(void) {
    struct debug_processes list = {0};
    control_each(add_run, &list);
    return list;
}

void debug_list_free(struct debug_processes *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->at[i].prefix);
        free(list->at[i].command);
    }
    free(list->at);
}

// ---- the connection ----------------------------------------------------------------------------

int debug_connect(int run, int pid) {
    char wish[64], answer[512];
    snprintf(wish, sizeof wish, "debug %d\n", pid);
    int connection = control_connect(run, wish, answer, sizeof answer);
    if (connection < 0)
        words_fail("cannot connect to process %d: %s", pid, answer);
    return connection;
}

static struct remote_reader reader;

// The next packet. False: the connection has ended.
static bool receive(int connection) {
    char byte;
    for (;;) {
        ssize_t got = recv(connection, &byte, 1, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        if (remote_take(&reader, (uint8_t)byte) == REMOTE_PACKET)
            return true;
    }
}

static bool send_packet(int connection, const char *payload) {
    static char frame[2 * REMOTE_MOST + REMOTE_OVERHEAD];
    size_t size = remote_frame(frame, payload, strlen(payload));
    for (size_t sent = 0; sent < size;) {
        ssize_t part = send(connection, frame + sent, size - sent, MSG_NOSIGNAL);
        if (part < 0 && errno != EINTR)
            return false;
        sent += part > 0 ? (size_t)part : 0;
    }
    return true;
}

bool debug_command(int connection, const char *command) {
    static char packet[REMOTE_MOST], text[REMOTE_MOST];
    size_t size = strlen(command);
    if (size > REMOTE_MOST / 2 - 16) {
        words_fail("the command is too long");
        return false;
    }
    strcpy(packet, "qRcmd,");
    *remote_put_hex(packet + strlen(packet), command, size) = 0;
    if (!send_packet(connection, packet))
        return false;
    while (receive(connection)) {
        if (reader.payload[0] == 'O' && reader.payload[1] != 'K')
            fwrite(text, 1, remote_get_hex(text, sizeof text, reader.payload + 1), stdout);
        else
            return true;
    }
    words_fail("the process has ended");
    return false;
}

void debug_disconnect(int connection) {
    if (send_packet(connection, "D"))
        receive(connection);
    close(connection);
}

const char *debug_ask(int connection, const char *packet) {
    return send_packet(connection, packet) && receive(connection) ? reader.payload : NULL;
}

// ---- passing bytes on --------------------------------------------------------------------------

// What passes in one direction.
struct direction {
    int from, to;
    struct remote_reader reader;
    bool is_last; // a packet after which the process answers no more, or its answer to one
};

// gdb lets the process go.
static bool is_farewell(const char *packet) {
    return *packet == 'D' || *packet == 'k' || strncmp(packet, "vKill", 5) == 0;
}

// The process has ended.
static bool is_end(const char *packet) {
    return *packet == 'W' || *packet == 'X';
}

// False: the end.
static bool pass_on(struct direction *direction, bool (*is_last)(const char *packet)) {
    char bytes[16384];
    ssize_t size = read(direction->from, bytes, sizeof bytes);
    if (size < 0 && errno == EINTR)
        return true;
    for (ssize_t i = 0; i < size; i++)
        if (remote_take(&direction->reader, (uint8_t)bytes[i]) == REMOTE_PACKET)
            direction->is_last = is_last(direction->reader.payload);
    return size > 0 && fd_write_all(direction->to, bytes, (size_t)size) == 0;
}

static bool is_any(const char *packet) {
    return true;
}

// After the last answer nothing more is read from gdb: that is for who comes next.
enum debug_relay_end debug_relay(const struct debug_ends *gdb, int connection) {
    static struct direction there, back; // they are large
    there = (struct direction){.from = gdb->in, .to = connection};
    back = (struct direction){.from = connection, .to = gdb->out};
    while (!back.is_last) {
        struct pollfd ends[2] = {{.fd = gdb->in, .events = POLLIN},
                                 {.fd = connection, .events = POLLIN}};
        if (poll(ends, 2, -1) < 0) {
            if (errno != EINTR)
                return DEBUG_FAILED;
            continue;
        }
        if (ends[1].revents && !pass_on(&back, there.is_last ? is_any : is_end))
            break;
        if (!back.is_last && ends[0].revents && !pass_on(&there, is_farewell))
            return DEBUG_GDB_GONE;
    }
    return DEBUG_PROCESS_GONE;
}
