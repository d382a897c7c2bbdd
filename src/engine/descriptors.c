#include "engine/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int descriptor_hide_below(int fd, int highest) {
    for (int to = highest; to > 2; to--) {
        if (fcntl(to, F_GETFD) == -1 && dup3(fd, to, O_CLOEXEC) == to) {
            close(fd);
            return to;
        }
    }
    return fd;
}

static int top_number(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 1024)
        return limit.rlim_cur - 1;
    return 1023;
}

int descriptor_hide(int fd) {
    return descriptor_hide_below(fd, top_number());
}
