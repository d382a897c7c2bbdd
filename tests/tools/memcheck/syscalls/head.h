#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <linux/aio_abi.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/input.h>
#include <linux/keyctl.h>
#include <linux/loop.h>
#include <linux/netlink.h>
#include <linux/rtc.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include "probe.h"

static int null_fd, zero_fd, pipe_in, pipe_out, unix_fd, inet_fd, netlink_fd, pair[2], file_fd;
static int directory_fd, timer_fd;

static void setup(void) {
    int ends[2];
    null_fd = open("/dev/null", O_RDWR);
    zero_fd = open("/dev/zero", O_RDWR);
    pipe(ends);
    pipe_out = ends[0], pipe_in = ends[1];
    unix_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    inet_fd = socket(AF_INET, SOCK_DGRAM, 0);
    netlink_fd = socket(AF_NETLINK, SOCK_RAW, 0);
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    file_fd = memfd_create("probe", 0);
    write(file_fd, "0123456789", 10);
    directory_fd = open("/", O_RDONLY | O_DIRECTORY);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
}
