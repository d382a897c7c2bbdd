#include "engine/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/rlimits.h"

// The kernel's table of descriptors is as large as the highest number, and every fork copies it.
enum { ABOVE_MOST = 1 << 16, USUAL = 1024 };

static int duplicate_at_most(int fd, int highest) {
    for (int to = highest; to > 2; to--)
        if (fcntl(to, F_GETFD) == -1 && dup3(fd, to, O_CLOEXEC) == to)
            return to;
    return fd;
}

int descriptor_duplicate_below(int fd) {
    return duplicate_at_most(fd, fd - 1);
}

// Inside the target's numbers, where it gets with the largest number of open files only.
static int duplicate_inside(int fd, uint64_t limit) {
    struct rlimit kernel;
    if (limit > ABOVE_MOST)
        limit = USUAL;
    if (getrlimit(RLIMIT_NOFILE, &kernel) == 0 && kernel.rlim_cur < limit)
        limit = kernel.rlim_cur;
    return duplicate_at_most(fd, (int)limit - 1);
}

int descriptor_hide(int fd) {
    uint64_t limit = rlimits_soft(WIRE_LIMIT_NOFILE);
    if ((uint64_t)fd >= limit) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    rlimits_lift();
    int to = limit <= ABOVE_MOST ? fcntl(fd, F_DUPFD_CLOEXEC, (int)limit) : -1;
    if (to < 0)
        to = duplicate_inside(fd, limit);
    rlimits_restore();
    return to;
}
