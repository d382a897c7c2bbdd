#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

int fd_move_high(int fd) {
    if (fd < 0)
        return fd;
    struct rlimit limit;
    int lowest = 500;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1000)
        lowest = limit.rlim_cur > 40 ? (int)limit.rlim_cur - 24 : 3;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    int error = errno;
    close(fd);
    errno = error;
    return high;
}

int fd_write_all(int fd, const char *bytes, size_t size) {
    while (size) {
        ssize_t done = write(fd, bytes, size);
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        } else if (done < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            if (poll(&wait, 1, 10000) == 0)
                return EAGAIN;
        } else if (done == 0 || errno != EINTR) {
            return done == 0 ? EIO : errno;
        }
    }
    return 0;
}

bool fd_set_size(int fd, off_t size) {
    const struct timespec at_once = {0};
    struct rlimit limit, lifted = {RLIM_INFINITY, RLIM_INFINITY};
    sigset_t too_large, before;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    getrlimit(RLIMIT_FSIZE, &limit);
    if (setrlimit(RLIMIT_FSIZE, &lifted) != 0) {
        lifted.rlim_cur = lifted.rlim_max = limit.rlim_max;
        setrlimit(RLIMIT_FSIZE, &lifted);
    }
    int failure = ftruncate(fd, size) == 0 ? 0 : errno;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (failure == EFBIG)
        sigtimedwait(&too_large, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return !failure;
}
