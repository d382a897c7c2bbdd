// Files, waiting, time, signals and memory policy: calls where fields are looked at one by one, or
// where what is written depends on how the call ended.
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <linux/mount.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timex.h>

#include "tools/shared/syscalls/pass.h"

enum { TIMESPEC = 16, TIMEVAL = 16, SIGNAL_SET = 8 };

// ---- files -------------------------------------------------------------------------------------

// The mode is read only when a file may be made.
static bool makes_file(uint64_t flags) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

void visit_open(const struct pass *pass) {
    if (makes_file(pass->arguments[1]))
        pass_register(pass, 2, 4, NULL);
}

void visit_openat(const struct pass *pass) {
    if (makes_file(pass->arguments[2]))
        pass_register(pass, 3, 4, NULL);
}

void visit_statx(const struct pass *pass) {
    uint64_t name = pass->arguments[1], buffer = pass->arguments[4];
    // Nothing at all is how programs find out whether there is such a call.
    if (!name && !buffer)
        return;
    pass_string(pass, name, "filename");
    pass_out(pass, buffer, sizeof(struct statx), UINT64_MAX, "buf");
}

void visit_mount(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    if (a[0])
        pass_string(pass, a[0], "source");
    pass_string(pass, a[1], "target");
    if (a[2])
        pass_string(pass, a[2], "type");
}

// ---- waiting -----------------------------------------------------------------------------------

enum { POLL_STEP = 64 };

// The kernel ignores the events of an entry with a negative descriptor.
static void pass_some_pollfds(const struct pass *pass, uint64_t list, uint32_t count) {
    struct pollfd entries[POLL_STEP];
    bool is_known = !pass->after && pass_read(entries, list, count * sizeof *entries);
    for (uint32_t i = 0; i < count; i++, list += sizeof(struct pollfd)) {
        pass_in(pass, list + offsetof(struct pollfd, fd), 4, "ufds.fd");
        if (!is_known || entries[i].fd >= 0)
            pass_in(pass, list + offsetof(struct pollfd, events), 2, "ufds.events");
        pass_out(pass, list + offsetof(struct pollfd, revents), 2, 2, "ufds.revents");
    }
}

static void pass_pollfds(const struct pass *pass) {
    uint64_t list = pass->arguments[0];
    uint32_t count = (uint32_t)pass->arguments[1];
    enum { MOST = 1 << 20 };
    if (count > MOST)
        count = MOST;
    for (uint32_t done = 0; done < count; done += POLL_STEP)
        pass_some_pollfds(pass, list + done * sizeof(struct pollfd),
                          count - done < POLL_STEP ? count - done : POLL_STEP);
}

void visit_poll(const struct pass *pass) {
    pass_pollfds(pass);
}

void visit_ppoll(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    pass_pollfds(pass);
    if (a[2])
        pass_in(pass, a[2], TIMESPEC, "tsp");
    if (a[3] && a[4] == SIGNAL_SET)
        pass_in(pass, a[3], SIGNAL_SET, "sigmask");
}

static void pass_fd_sets(const struct pass *pass) {
    static const char *const names[] = {NULL, "readfds", "writefds", "exceptfds"};
    // The kernel reads whole words, but a program need not set more than the bits it names.
    uint64_t size = (uint32_t)pass->arguments[0] / 8;
    for (unsigned i = 1; i <= 3; i++)
        if (pass->arguments[i])
            pass_in(pass, pass->arguments[i], size, "%s", names[i]);
}

void visit_select(const struct pass *pass) {
    pass_fd_sets(pass);
    if (pass->arguments[4])
        pass_in(pass, pass->arguments[4], TIMEVAL, "timeout");
}

void visit_pselect6(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    uint64_t mask;
    pass_fd_sets(pass);
    if (a[4])
        pass_in(pass, a[4], TIMESPEC, "timeout");
    if (!a[5])
        return;
    pass_in(pass, a[5], 16, "sig");
    if (pass_read(&mask, a[5], sizeof mask) && mask)
        pass_in(pass, mask, SIGNAL_SET, "sig->ss");
}

void visit_epoll_ctl(const struct pass *pass) {
    // The rest is the program's own, to be handed back.
    if (pass->arguments[1] != EPOLL_CTL_DEL)
        pass_in(pass, pass->arguments[3], sizeof(uint32_t), "event");
}

// ---- time --------------------------------------------------------------------------------------

// The time that was left is written only when a signal ended the sleep.
static void pass_sleep(const struct pass *pass, uint64_t wanted, uint64_t left, const char *in,
                       const char *out) {
    pass_in(pass, wanted, TIMESPEC, "%s", in);
    if (left)
        pass_out(pass, left, TIMESPEC, pass->result == -EINTR ? TIMESPEC : 0, "%s", out);
}

void visit_sleep(const struct pass *pass) {
    pass_sleep(pass, pass->arguments[0], pass->arguments[1], "req", "rem");
}

void visit_clock_sleep(const struct pass *pass) {
    pass_sleep(pass, pass->arguments[2], pass->arguments[3], "rqtp", "rmtp");
}

void visit_utimensat(const struct pass *pass) {
    static const char *const names[2][2] = {{"times[0].tv_sec", "times[0].tv_nsec"},
                                            {"times[1].tv_sec", "times[1].tv_nsec"}};
    uint64_t times = pass->arguments[2];
    bool needs_seconds[2] = {true, true};
    if (pass->arguments[1])
        pass_string(pass, pass->arguments[1], "filename");
    if (!times)
        return;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t part = times + i * TIMESPEC + 8;
        int64_t fraction;
        pass_in(pass, part, sizeof fraction, "%s", names[i][1]);
        if (pass_read(&fraction, part, sizeof fraction))
            needs_seconds[i] = fraction != UTIME_NOW && fraction != UTIME_OMIT;
    }
    for (unsigned i = 0; i < 2; i++)
        if (needs_seconds[i])
            pass_in(pass, times + i * TIMESPEC, 8, "%s", names[i][0]);
}

void visit_timer_create(const struct pass *pass) {
    uint64_t event = pass->arguments[1];
    int notify;
    if (event) {
        pass_in(pass, event + offsetof(struct sigevent, sigev_value), 8, "evp.sigev_value");
        pass_in(pass, event + offsetof(struct sigevent, sigev_signo), 4, "evp.sigev_signo");
        pass_in(pass, event + offsetof(struct sigevent, sigev_notify), 4, "evp.sigev_notify");
        if (pass_read(&notify, event + offsetof(struct sigevent, sigev_notify), sizeof notify) &&
            notify & 4 /* to one thread */)
            pass_in(pass, event + offsetof(struct sigevent, sigev_notify) + 4, 4,
                    "evp.sigev_notify_thread_id");
    }
    pass_out(pass, pass->arguments[2], 4, 4, "timerid");
}

struct adjustment {
    unsigned mode;
    uint8_t offset, size;
    const char *name;
};

static const struct adjustment adjustments[] = {
    {ADJ_OFFSET | ADJ_OFFSET_SINGLESHOT, offsetof(struct timex, offset), 8, "offset"},
    {ADJ_FREQUENCY, offsetof(struct timex, freq), 8, "freq"},
    {ADJ_MAXERROR, offsetof(struct timex, maxerror), 8, "maxerror"},
    {ADJ_ESTERROR, offsetof(struct timex, esterror), 8, "esterror"},
    {ADJ_STATUS, offsetof(struct timex, status), 4, "status"},
    {ADJ_TIMECONST | ADJ_TAI, offsetof(struct timex, constant), 8, "constant"},
    {ADJ_TICK, offsetof(struct timex, tick), 8, "tick"},
};

static void pass_timex(const struct pass *pass, uint64_t address, const char *call) {
    unsigned modes;
    pass_in(pass, address, sizeof modes, "%s(timex->modes)", call);
    if (!pass_read(&modes, address, sizeof modes))
        modes = 0;
    for (size_t i = 0; i < sizeof adjustments / sizeof *adjustments; i++)
        if (modes & adjustments[i].mode)
            pass_in(pass, address + adjustments[i].offset, adjustments[i].size, "%s(timex->%s)",
                    call, adjustments[i].name);
    pass_out(pass, address, sizeof(struct timex), UINT64_MAX, "adjtimex(timex)");
}

void visit_adjtimex(const struct pass *pass) {
    pass_timex(pass, pass->arguments[0], "adjtimex");
}

void visit_clock_adjtime(const struct pass *pass) {
    pass_timex(pass, pass->arguments[1], "clock_adjtime");
}

// ---- signals -----------------------------------------------------------------------------------

struct kernel_action {
    uint64_t handler, flags, restorer, mask;
};

void visit_rt_sigaction(const struct pass *pass) {
    enum { HAS_RESTORER = 0x04000000 };
    uint64_t action = pass->arguments[1], old = pass->arguments[2];
    uint64_t flags;
    if (action) {
        pass_in(pass, action, 8, "act->sa_handler");
        pass_in(pass, action + offsetof(struct kernel_action, mask), 8, "act->sa_mask");
        pass_in(pass, action + offsetof(struct kernel_action, flags), 8, "act->sa_flags");
        if (pass_read(&flags, action + offsetof(struct kernel_action, flags), sizeof flags) &&
            flags & HAS_RESTORER)
            pass_in(pass, action + offsetof(struct kernel_action, restorer), 8, "act->sa_restorer");
    }
    if (old)
        pass_out(pass, old, sizeof(struct kernel_action), UINT64_MAX, "oldact");
}

void visit_sigaltstack(const struct pass *pass) {
    uint64_t stack = pass->arguments[0], old = pass->arguments[1];
    if (stack) {
        pass_in(pass, stack + offsetof(stack_t, ss_sp), 8, "ss");
        pass_in(pass, stack + offsetof(stack_t, ss_flags), 4, "ss");
        pass_in(pass, stack + offsetof(stack_t, ss_size), 8, "ss");
    }
    if (old)
        pass_out(pass, old, sizeof(stack_t), UINT64_MAX, "oss");
}

// ---- message queues ----------------------------------------------------------------------------

void visit_mq_open(const struct pass *pass) {
    uint64_t attributes = pass->arguments[3];
    pass_string(pass, pass->arguments[0], "name");
    if (!(pass->arguments[1] & O_CREAT))
        return;
    pass_register(pass, 2, 4, NULL);
    pass_register(pass, 3, 8, NULL);
    if (attributes) {
        pass_in(pass, attributes + offsetof(struct mq_attr, mq_maxmsg), 8, "attr->mq_maxmsg");
        pass_in(pass, attributes + offsetof(struct mq_attr, mq_msgsize), 8, "attr->mq_msgsize");
    }
}

// ---- memory ------------------------------------------------------------------------------------

void visit_mincore(const struct pass *pass) {
    uint64_t pages = (pass->arguments[1] + 4095) / 4096;
    pass_out(pass, pass->arguments[2], pages, pages, "vec");
}

void visit_getgroups(const struct pass *pass) {
    int size = (int)pass->arguments[0];
    if (size > 0)
        pass_out(pass, pass->arguments[1], size * 4ul, pass->result * 4, "list");
}

void visit_get_mempolicy(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    if (a[0])
        pass_out(pass, a[0], 4, 4, "policy");
    if (a[1])
        pass_out(pass, a[1], node_mask_bytes(a[2]), UINT64_MAX, "nodemask");
}

void visit_mbind(const struct pass *pass) {
    const uint64_t *a = pass->arguments;
    if (a[3])
        pass_in(pass, a[3], node_mask_bytes(a[4]), "nodemask");
}

// The last argument is used with a place to move to only.
void visit_mremap(const struct pass *pass) {
    if (pass->arguments[3] & MREMAP_FIXED)
        pass_register(pass, 4, 8, NULL);
}
