#include "supervisor/debugger.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/remote.h"
#include "base/text.h"
#include "base/vector.h"
#include "supervisor/hooks.h"
#include "supervisor/log.h"
#include "supervisor/monitor.h"
#include "supervisor/tool.h"

struct debug_connection {
    int pid, pidfd;
    int client, process;         // -1: not there yet
    bool is_listening;           // the process has a handler for the signal
    struct remote_reader reader; // of what the client sends: interrupts are between packets
};

static struct debug_connection *find(const struct debugger *debugger, int pid) {
    for (size_t i = 0; i < debugger->connection_count; i++)
        if (debugger->connections[i].pid == pid)
            return &debugger->connections[i];
    return NULL;
}

static void watch_fd(const struct debugger *debugger, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = DEBUGGER_EVENT + (uint64_t)fd};
    epoll_ctl(debugger->events, EPOLL_CTL_ADD, fd, &event);
}

// Both ends, once they are there.
static void watch(const struct debugger *debugger, const struct debug_connection *connection) {
    if (connection->client < 0 || connection->process < 0)
        return;
    watch_fd(debugger, connection->client);
    watch_fd(debugger, connection->process);
}

void debugger_use_events(struct debugger *debugger, int epoll) {
    debugger->events = epoll;
    for (size_t i = 0; i < debugger->connection_count; i++)
        watch(debugger, &debugger->connections[i]);
}

// Without the risk of hitting a later process of the same number. Several signals may become one,
// and a signal may come late: the process then opens a channel that nobody wants.
static void ask(const struct debug_connection *connection) {
    siginfo_t info = {.si_signo = WIRE_DEBUG_SIGNAL, .si_code = WIRE_DEBUG_CODE};
    if (connection->is_listening && connection->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, connection->pidfd, WIRE_DEBUG_SIGNAL, &info, 0);
}

static void drop(struct debugger *debugger, struct debug_connection *connection) {
    if (connection->client >= 0)
        close(connection->client);
    if (connection->process >= 0)
        close(connection->process);
    *connection = debugger->connections[--debugger->connection_count];
    if (!debugger->connection_count) {
        free(debugger->connections);
        debugger->connections = NULL;
    }
}

// ---- ends --------------------------------------------------------------------------------------

static bool send_all(int to, const char *bytes, size_t size) {
    for (size_t sent = 0; sent < size;) {
        ssize_t part = send(to, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        sent += (size_t)part;
    }
    return true;
}

// The client is gone: the process notices that its end is closed.
static void end_client(struct debugger *debugger, struct debug_connection *connection) {
    struct debug_connection ended = *connection;
    drop(debugger, connection);
    ask(&ended);
}

// The process has closed its end. What it has sent last reaches gdb first: an answer, or how it
// ended.
static void end_process(struct debugger *debugger, struct debug_connection *connection) {
    char bytes[4096];
    ssize_t size;
    while (connection->process >= 0 && connection->client >= 0 &&
           (size = recv(connection->process, bytes, sizeof bytes, MSG_DONTWAIT)) > 0 &&
           send_all(connection->client, bytes, (size_t)size))
        ;
    drop(debugger, connection);
}

// ---- beginnings --------------------------------------------------------------------------------

static struct debug_connection *find_or_add(struct debugger *debugger,
                                            const struct followed *process) {
    struct debug_connection *connection = find(debugger, process->pid);
    if (connection)
        return connection;
    connection = vector_push(debugger->connections, debugger->connection_count);
    *connection = (struct debug_connection){.pid = process->pid,
                                            .pidfd = process->pidfd,
                                            .client = -1,
                                            .process = -1,
                                            .is_listening = process->greeted && !process->execs};
    return connection;
}

// The client has closed its end, and the event may still be on its way here.
static bool has_left(const struct debug_connection *connection) {
    struct pollfd client = {.fd = connection->client, .events = POLLRDHUP};
    return poll(&client, 1, 0) > 0 && client.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

const char *debugger_connect(struct debugger *debugger, const struct supervisor_request *request,
                             const struct followed *process, int client) {
    if (!request->engine)
        return "the program runs natively; gdb can attach to it directly";
    if (!request->debugger.is_enabled)
        return "the program was started with --vgdb=no";
    if (!process || process->away)
        return "the process is not translated";
    struct debug_connection *connection = find(debugger, process->pid);
    if (connection && connection->client >= 0) {
        if (!has_left(connection))
            return "another gdb is connected to the process";
        end_client(debugger, connection);
    }
    connection = find_or_add(debugger, process);
    connection->client = client;
    send(client, "ok\n", 3, MSG_NOSIGNAL);
    if (connection->process < 0)
        ask(connection);
    else
        watch(debugger, connection);
    return NULL;
}

void debugger_take_process(struct debugger *debugger, const struct followed *process, int fd,
                           bool waits) {
    struct debug_connection *connection = find(debugger, process->pid);
    if (connection && connection->process >= 0)
        end_process(debugger, connection); // a process has one channel: the former one is closed
    connection = find_or_add(debugger, process);
    connection->process = fd;
    if (connection->client >= 0 || waits)
        watch(debugger, connection);
    else
        drop(debugger, connection); // who wanted to connect has gone
}

void debugger_greeted(struct debugger *debugger, const struct followed *process) {
    struct debug_connection *connection = find(debugger, process->pid);
    if (!connection || connection->is_listening || !process->greeted)
        return;
    connection->is_listening = true;
    if (connection->client >= 0 && connection->process < 0)
        ask(connection);
}

void debugger_execs(struct debugger *debugger, const struct followed *process) {
    struct debug_connection *connection = find(debugger, process->pid);
    if (connection)
        connection->is_listening = false;
}

// ---- bytes -------------------------------------------------------------------------------------

static bool has_interrupt(struct debug_connection *connection, const char *bytes, size_t size) {
    bool found = false;
    for (size_t i = 0; i < size; i++)
        found |= remote_take(&connection->reader, (uint8_t)bytes[i]) == REMOTE_BREAK;
    return found;
}

static void take_bytes(struct debugger *debugger, struct debug_connection *connection,
                       bool is_client) {
    char bytes[16384];
    int from = is_client ? connection->client : connection->process;
    int to = is_client ? connection->process : connection->client;
    if (from < 0 || to < 0)
        return; // an event of a descriptor that had the same number
    ssize_t size = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0 || !send_all(to, bytes, (size_t)size)) {
        if (is_client)
            end_client(debugger, connection);
        else
            drop(debugger, connection);
        return;
    }
    if (is_client && has_interrupt(connection, bytes, (size_t)size))
        ask(connection);
}

void debugger_take_event(struct debugger *debugger, int fd) {
    for (size_t i = 0; i < debugger->connection_count; i++) {
        struct debug_connection *connection = &debugger->connections[i];
        if (connection->client == fd || connection->process == fd) {
            take_bytes(debugger, connection, connection->client == fd);
            return;
        }
    }
}

void debugger_forget(struct debugger *debugger, int pid) {
    struct debug_connection *connection = find(debugger, pid);
    if (connection)
        end_process(debugger, connection);
}

// ---- commands ----------------------------------------------------------------------------------

static void show(const struct debug_connection *connection, const struct text *text) {
    static char packet[REMOTE_MOST], frame[2 * REMOTE_MOST + REMOTE_OVERHEAD];
    size_t most = (REMOTE_MOST - 1) / 2;
    for (size_t at = 0; at < text->size; at += most) {
        size_t part = text->size - at < most ? text->size - at : most;
        packet[0] = 'O';
        remote_put_hex(packet + 1, text->bytes + at, part);
        if (!send_all(connection->client, frame, remote_frame(frame, packet, 1 + 2 * part)))
            return;
    }
}

static void show_diverted(struct debugger *debugger, const struct debug_connection *connection) {
    if (connection && connection->client >= 0)
        show(connection, &debugger->diverted);
    text_free(&debugger->diverted);
}

static void perform(struct debugger *debugger, struct tool_run *run, const struct followed *process,
                    const char *command) {
    struct text answer = {0};
    monitor_perform(run, process, command, &answer);
    text_add(&debugger->diverted, answer.bytes, answer.size);
    text_free(&answer);
}

void debugger_monitor(struct debugger *debugger, struct tool_run *run,
                      const struct followed *process, int level, const char *command) {
    switch (level) {
    case 0:
        perform(debugger, run, process, command);
        break;
    case 1:
        log_divert(run->log, process->pid, &debugger->diverted);
        break;
    case 3:
        text_string(&debugger->diverted, command);
        break;
    default:
        log_divert(run->log, 0, NULL);
        show_diverted(debugger, find(debugger, process->pid));
    }
}
