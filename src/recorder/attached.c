// The recorder in a process that runs already. Quern loads this library on a thread of its own, the
// helper (wire/wire_attach.h), which stays as long as events are recorded. Quern itself writes the
// jumps to the hooks, while all threads stand still.
//
// When recording ends, the library stays: a thread may still have to return through it. So does the
// address space of the area, empty. Who attaches again finds both.
#include "recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire_target.h"

#define OPTIONS_WAIT 300 // tenths of a second for the options to come
#define OTHERS_WAIT  50  // and for a helper whose Quern is gone
#define HIGH_FD      900 // the wire's number or higher, if so many are permitted
#define LAST_WORDS   50  // milliseconds for threads that are about to write a record

EXPORT void *quern_recorder_attach(struct wire_attach *attach);

// The process whose helper uses all this; 0: none. A forked child has its parent's.
static _Atomic pid_t user;
// Counts the helpers: one that still waits for its options makes way for the next.
static _Atomic uint32_t helpers;

static void set_state(struct wire_attach *attach, enum wire_attach_state state) {
    __atomic_store_n(&attach->state, state, __ATOMIC_SEQ_CST);
}

static int move_high(int fd) {
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

// ---- the wire ----

// A packet with a descriptor; -1: there is none.
static int receive_file(int wire) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr packet = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    if (recvmsg(wire, &packet, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *gift = CMSG_FIRSTHDR(&packet);
    int fd = -1;
    if (gift && gift->cmsg_level == SOL_SOCKET && gift->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(gift), sizeof fd);
    return fd;
}

static void sleep_for(long milliseconds) {
    struct timespec time = {.tv_nsec = milliseconds * 1000000};
    syscall(SYS_nanosleep, &time, NULL);
}

static int receive_options(int wire, uint32_t number) {
    int config = -1;
    struct pollfd packet = {.fd = wire, .events = POLLIN};
    for (int i = 0; i < OPTIONS_WAIT && config < 0 && helpers == number; i++)
        if (poll(&packet, 1, 100) == 1)
            return receive_file(wire);
    return -1;
}

// Makes the wire, leaves one end to the supervisor, and gets the options over it.
static const char *open_wire(struct wire_attach *attach, uint32_t number, int *wire, int *config) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return errno == EMFILE ? "it has no file descriptor left (ulimit -n)"
                               : "it cannot make a socket";
    *wire = move_high(ends[1]);
    attach->wire = ends[0];
    set_state(attach, WIRE_ATTACH_WAITING);
    *config = receive_options(*wire, number);
    close(ends[0]);
    return *config < 0 ? "no options have come" : NULL;
}

// ---- the helper ----

static const char *begin(struct wire_attach *attach, uint32_t number) {
    int wire = -1, config = -1;
    const volatile uint32_t *active;
    const char *problem = open_wire(attach, number, &wire, &config);
    if (problem) {
        if (wire >= 0)
            close(wire);
        return problem;
    }
    problem = recorder_start_attached(wire, config, &active);
    close(config);
    if (problem) {
        wire_send_notice(0, problem);
        recorder_end_attached();
        return problem;
    }
    unsigned count;
    attach->patches = (uint64_t)families_attach(&count);
    attach->patch_count = count;
    attach->active = (uint64_t)active;
    set_state(attach, WIRE_ATTACH_READY);
    wire_send(WIRE_ATTACHED, NULL, 0);
    return NULL;
}

// Until the end of recording. True: Quern has said so, and nobody uses the scratch any more.
static bool stay(void) {
    char byte = 0;
    ssize_t got;
    do
        got = recv(wire_fd(), &byte, 1, 0);
    while ((got < 0 && errno == EINTR) || (got == 1 && byte != WIRE_ATTACH_END));
    return got == 1;
}

static void fail(struct wire_attach *attach, const char *problem) {
    strncpy(attach->problem, problem, sizeof attach->problem - 1);
    set_state(attach, WIRE_ATTACH_FAILED);
}

static bool take_turn(void) {
    for (int i = 0; i < OTHERS_WAIT && !recorder_on(); i++) {
        pid_t old = user;
        if (old != getpid() && atomic_compare_exchange_strong(&user, &old, getpid()))
            return true;
        sleep_for(100);
    }
    return false;
}

void *quern_recorder_attach(struct wire_attach *attach) {
    syscall(SYS_prctl, PR_SET_NAME, "quern", 0, 0, 0);
    uint32_t number = ++helpers;
    if (!take_turn()) {
        fail(attach, "it is recorded by Quern already");
        return NULL;
    }
    const char *problem = begin(attach, number);
    if (problem)
        fail(attach, problem);
    bool is_said = !problem && stay();
    if (!problem) {
        *(volatile uint32_t *)recorder_active = 0;
        recorder_stopped();
        sleep_for(LAST_WORDS);
        recorder_end_attached();
    }
    user = 0;
    if (is_said)
        syscall(SYS_munmap, attach, WIRE_ATTACH_SIZE);
    return NULL;
}
