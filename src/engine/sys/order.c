// The order of the log and of what the target does.
//
// Reports are written by another process, a little later. A reader who sees a line of the program
// takes it that reports further down were raised after it. So whatever was raised before is settled
// (wire_target.h) before the target writes to a terminal or to where the log goes, before it
// becomes another program, and before it ends. The same holds for the last reports of a child when
// its parent has waited for it.
//
// It costs two loads in a system call while nothing is outstanding. Tools that do not see system
// calls let the cache make them: their few messages are settled when they are raised.
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>

#include "engine/memory/target.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "wire/wire_target.h"

static bool sees_calls;

void order_init(bool all_calls_are_seen) {
    sees_calls = all_calls_are_seen;
}

// A signal is delivered first; then the call begins anew.
static void settle(void) {
    while (!(self->pending & PENDING_SIGNAL) && !wire_settle())
        ;
}

void order_raised(void) {
    if (!sees_calls)
        settle();
}

static bool is_at(const struct wire_place *place, const struct stat *status) {
    return place->inode == status->st_ino && place->device == status->st_dev;
}

static bool is_seen_with_log(int fd) {
    struct stat status;
    struct termios settings;
    const struct wire_board *board = wire_board();
    if (!board || fstat(fd, &status) < 0)
        return false;
    return is_at(&board->log, &status) || is_at(&board->xml, &status) ||
           (S_ISCHR(status.st_mode) && ioctl(fd, TCGETS, &settings) == 0);
}

// The descriptor that a call writes to; -1: none.
static int written_descriptor(long number, const struct sys_arguments *args) {
    switch (number) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_vmsplice:
        return (int)args->a[0];
    case SYS_tee:
        return (int)args->a[1];
    case SYS_splice:
    case SYS_copy_file_range:
        return (int)args->a[2];
    default:
        return -1;
    }
}

// Requests that the call hands over may write anywhere; they are not looked at one by one.
static bool may_write_anywhere(long number, const struct sys_arguments *args) {
    return number == SYS_io_uring_enter && (uint32_t)args->a[1] > 0;
}

void order_before_call(long number, const struct sys_arguments *args) {
    int fd = written_descriptor(number, args);
    if (number == SYS_execve || number == SYS_execveat || may_write_anywhere(number, args) ||
        (fd >= 0 && is_seen_with_log(fd)))
        settle();
}

static void note_reaped(int pid) {
    wire_send_reaped(pid);
    order_raised();
}

long sys_wait4(long number, struct sys_arguments *args) {
    long pid = sys_pass(number, args);
    if (pid > 0)
        note_reaped((int)pid);
    return pid;
}

long sys_waitid(long number, struct sys_arguments *args) {
    siginfo_t info = {0};
    long result = sys_pass(number, args);
    if (result == 0 && args->a[2] && target_read(&info, args->a[2], sizeof info) == 0 &&
        info.si_pid)
        note_reaped(info.si_pid);
    return result;
}
