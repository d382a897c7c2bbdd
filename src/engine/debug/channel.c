#include "engine/debug/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/remote.h"
#include "engine/descriptors.h"
#include "engine/process.h"
#include "engine/rlimits.h"
#include "engine/task.h"
#include "wire/wire_target.h"

static struct remote_reader reader;
static char input[4096];
static size_t input_at, input_end;
static bool has_heard;       // from gdb
static bool is_acknowledged; // every packet, until gdb asks to stop that

bool channel_open(bool waits) {
    int ends[2];
    rlimits_lift();
    bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
    if (made) {
        process.debug_fd = descriptor_hide(ends[0]);
        if (process.debug_fd != ends[0])
            close(ends[0]);
        wire_send_file(waits ? WIRE_WAITS_FOR_DEBUGGER : WIRE_DEBUGGER, ends[1]);
        close(ends[1]);
    }
    rlimits_restore();
    memset(&reader, 0, sizeof reader);
    input_at = input_end = 0;
    has_heard = false;
    is_acknowledged = true;
    return made;
}

void channel_close(void) {
    if (process.debug_fd >= 0)
        close(process.debug_fd);
    process.debug_fd = -1;
}

bool channel_has_input(void) {
    struct pollfd look = {.fd = process.debug_fd, .events = POLLIN};
    return input_at < input_end || poll(&look, 1, 0) > 0;
}

// More bytes, or why there are none.
static long fill(void) {
    struct pollfd wait = {.fd = process.debug_fd, .events = POLLIN};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR) // a handler never restarts this call
        if (!has_heard && self->pending & PENDING_SIGNAL)
            return CHANNEL_SIGNALLED;
    ssize_t got;
    do
        got = recv(process.debug_fd, input, sizeof input, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return CHANNEL_CLOSED;
    has_heard = true;
    input_at = 0;
    input_end = (size_t)got;
    return 0;
}

static void acknowledge(char sign) {
    if (is_acknowledged)
        send(process.debug_fd, &sign, 1, MSG_NOSIGNAL);
}

void channel_stop_acknowledging(void) {
    is_acknowledged = false;
}

long channel_receive(const char **packet) {
    for (;;) {
        if (input_at == input_end) {
            long failure = fill();
            if (failure)
                return failure;
        }
        switch (remote_take(&reader, (uint8_t)input[input_at++])) {
        case REMOTE_MORE:
            break;
        case REMOTE_BREAK:
            return CHANNEL_INTERRUPT;
        case REMOTE_DAMAGED:
            acknowledge('-');
            break;
        case REMOTE_PACKET:
            acknowledge('+');
            *packet = reader.payload;
            return (long)reader.size;
        }
    }
}

void channel_send(const char *payload, size_t size) {
    static char frame[2 * REMOTE_MOST + REMOTE_OVERHEAD];
    size_t length = remote_frame(frame, payload, size < REMOTE_MOST ? size : REMOTE_MOST);
    for (size_t sent = 0; sent < length;) {
        ssize_t part = send(process.debug_fd, frame + sent, length - sent, MSG_NOSIGNAL);
        if (part < 0 && errno != EINTR)
            return;
        sent += part > 0 ? (size_t)part : 0;
    }
}

void channel_reply(const char *text) {
    channel_send(text, strlen(text));
}
