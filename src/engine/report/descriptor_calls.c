#include "engine/report/descriptor_calls.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/process.h"

// ---- calls -------------------------------------------------------------------------------------

// The result of these is a descriptor.
static const uint16_t opening[] = {
    SYS_open,
    SYS_openat,
    SYS_openat2,
    SYS_creat,
    SYS_socket,
    SYS_accept,
    SYS_accept4,
    SYS_epoll_create,
    SYS_epoll_create1,
    SYS_eventfd,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_inotify_init,
    SYS_inotify_init1,
    SYS_memfd_create,
    SYS_memfd_secret,
    SYS_userfaultfd,
    SYS_perf_event_open,
    SYS_io_uring_setup,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_fanotify_init,
    SYS_mq_open,
    SYS_open_by_handle_at,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsmount,
    SYS_fspick,
    SYS_landlock_create_ruleset,
    SYS_dup,
    SYS_signalfd,
    SYS_signalfd4,
};

// The first argument of these is a descriptor. (Those with a directory's take AT_FDCWD.)
static const uint16_t using[] = {
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_ioctl,
    SYS_pread64,
    SYS_pwrite64,
    SYS_readv,
    SYS_writev,
    SYS_preadv,
    SYS_pwritev,
    SYS_preadv2,
    SYS_pwritev2,
    SYS_dup,
    SYS_dup2,
    SYS_dup3,
    SYS_connect,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_shutdown,
    SYS_bind,
    SYS_listen,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_fcntl,
    SYS_flock,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_getdents,
    SYS_getdents64,
    SYS_fchdir,
    SYS_fchmod,
    SYS_fchown,
    SYS_fstatfs,
    SYS_readahead,
    SYS_fsetxattr,
    SYS_fgetxattr,
    SYS_flistxattr,
    SYS_fremovexattr,
    SYS_epoll_ctl,
    SYS_epoll_wait,
    SYS_epoll_pwait,
    SYS_fadvise64,
    SYS_fallocate,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_sync_file_range,
    SYS_vmsplice,
    SYS_splice,
    SYS_tee,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    SYS_syncfs,
    SYS_sendfile,
};

static bool is_among(long number, const uint16_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

#define IS_AMONG(number, numbers) is_among(number, numbers, sizeof numbers / sizeof *numbers)

bool descriptor_call_of(long number, const uint64_t arguments[6], struct descriptor_call *call) {
    *call = (struct descriptor_call){.uses = IS_AMONG(number, using) ? 0 : -1};
    if (IS_AMONG(number, opening)) {
        call->opens = OPENS_RESULT;
        call->may_move = true;
        // An existing one may be changed instead.
        if ((number == SYS_signalfd || number == SYS_signalfd4) && (int)arguments[0] != -1)
            *call = (struct descriptor_call){.uses = 0};
    } else if (number == SYS_dup2 || number == SYS_dup3 ||
               (number == SYS_fcntl &&
                (arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC))) {
        call->opens = OPENS_RESULT;
    } else if (number == SYS_pipe || number == SYS_pipe2) {
        call->opens = OPENS_PAIR;
    } else if (number == SYS_socketpair) {
        call->opens = OPENS_PAIR;
        call->argument = 3;
    } else if (number == SYS_recvmsg) {
        call->opens = OPENS_RECEIVED;
    } else if (call->uses < 0 && number != SYS_close_range) {
        return false;
    }
    return true;
}

// ---- descriptions ------------------------------------------------------------------------------

static void add_address(char *to, size_t size, const struct sockaddr_storage *address) {
    static const struct in6_addr any6;
    char host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    bool is_bound = address->ss_family == AF_INET
                        ? four->sin_port || four->sin_addr.s_addr
                        : six->sin6_port || memcmp(&six->sin6_addr, &any6, sizeof any6) != 0;
    if (!is_bound) {
        snprintf(to, size, "<unbound>");
        return;
    }
    if (address->ss_family == AF_INET) {
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(to, size, "%s:%u", host, ntohs(four->sin_port));
    } else {
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(to, size, "[%s]:%u", host, ntohs(six->sin6_port));
    }
}

static bool describe_socket(int fd, char *to, size_t size) {
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t local_size = sizeof local, peer_size = sizeof peer;
    char here[80], there[80] = "unbound";
    if (getsockname(fd, (void *)&local, &local_size) < 0)
        return false;
    switch (local.ss_family) {
    case AF_INET:
    case AF_INET6:
        add_address(here, sizeof here, &local);
        if (getpeername(fd, (void *)&peer, &peer_size) == 0)
            add_address(there, sizeof there, &peer);
        snprintf(to, size, "AF_INET%s socket %d: %s <-> %s", local.ss_family == AF_INET ? "" : "6",
                 fd, here, there);
        return true;
    case AF_UNIX: {
        const struct sockaddr_un *un = (const void *)&local;
        snprintf(to, size, "AF_UNIX socket %d: %.100s", fd,
                 un->sun_path[0] ? un->sun_path : "<unknown>");
        return true;
    }
    default:
        snprintf(to, size, "pf-%d socket %d:", local.ss_family, fd);
        return true;
    }
}

bool descriptor_describe(int fd, char *to, size_t size) {
    char link[40], path[512];
    if (describe_socket(fd, to, size))
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return false;
    path[length] = 0;
    if (path[0] == '/')
        snprintf(to, size, "file descriptor %d: %s", fd, path);
    else // a pipe, an event: it has no name
        snprintf(to, size, "file descriptor %d:", fd);
    return true;
}

void descriptors_each_open(void (*visit)(int fd)) {
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder) && !process_owns_descriptor(fd))
            visit(fd);
    }
    if (folder)
        closedir(folder);
}
