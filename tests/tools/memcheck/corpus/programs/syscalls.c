// System calls that are given what was never set or must not be touched.
//
// case write_undefined -DCALL='write(1, fresh, 10)'
// case write_undefined_middle -DCALL='memset(fresh, 65, 64), fresh[7] = undefined(), write(1, fresh, 10)'
// case write_after -DCALL='memset(block, 65, 16), write(1, block, 20)'
// case write_freed -DCALL='memset(block, 65, 16), free(block), write(1, block, 16), block = 0'
// case write_stack -DCALL='write(1, stack, 8)'
// case write_descriptor -DCALL='write(undefined() & 0 | 1, "x", 1), write(undefined() | 1, "x", 1)'
// case write_size -DCALL='write(1, "x", undefined() & 1)'
// case write_padding -DCALL='pair.small = 65, pair.large = 66, write(1, &pair, sizeof(pair))'
// case write_null -DCALL='write(1, 0, 5)'
// case read_after -DCALL='read(zero, block, 20)'
// case read_freed -DCALL='free(block), read(zero, block, 16), block = 0'
// case read_defines -DCALL='read(zero, fresh, 32), kept = fresh[31] ? 1 : 2' clean
// case read_defines_part -DCALL='read(zero, fresh, 32), kept = fresh[32] ? 1 : 2'
// case open_undefined -DCALL='fresh[5] = 0, open(fresh, 0)' --malloc-fill=61
// case open_over -DCALL='memset(block, 97, 16), open(block, 0)'
// case open_flags -DCALL='open("/dev/null", undefined() & 0x80000)'
// case access_freed -DCALL='strcpy(block, "x"), free(block), access(block, 0), block = 0'
// case stat_after -DCALL='stat("/", (struct stat *)block)'
// case stat_undefined_name -DCALL='fresh[5] = 0, stat(fresh, &status)' --malloc-fill=61
// case writev_undefined -DCALL='vector[0].iov_base = fresh, vector[0].iov_len = 8, vector[1].iov_base = "abc", vector[1].iov_len = 3, writev(1, vector, 2)'
// case readv_after -DCALL='vector[0].iov_base = block, vector[0].iov_len = 20, readv(zero, vector, 1)'
// case send_undefined -DCALL='send(sockets[0], fresh, 5, 0)'
// case sendto_undefined -DCALL='sendto(sockets[0], fresh, 5, 0, 0, 0)'
// case sendmsg_undefined -DCALL='memset(&message, 0, sizeof(message)), vector[0].iov_base = fresh, vector[0].iov_len = 8, message.msg_iov = vector, message.msg_iovlen = 1, sendmsg(sockets[0], &message, 0)'
// case recv_after -DCALL='send(sockets[0], "12345678901234567890", 20, 0), recv(sockets[1], block, 20, 0)'
// case recv_defines -DCALL='send(sockets[0], "12345", 5, 0), recv(sockets[1], fresh, 20, 0), kept = fresh[4] ? 1 : 2, kept = fresh[5] ? 1 : 2' clean
// case connect_padding -DCALL='address.sin_family = AF_INET, connect(zero, (struct sockaddr *)&address, sizeof(address))'
// case bind_undefined -DCALL='bind(sockets[0], (struct sockaddr *)fresh, 16)'
// case setsockopt_undefined -DCALL='setsockopt(sockets[0], SOL_SOCKET, SO_RCVBUF, fresh, 4)'
// case getsockopt_after -DCALL='length = 4, getsockopt(sockets[0], SOL_SOCKET, SO_RCVBUF, block + 14, &length)'
// case ioctl_after -DCALL='ioctl(sockets[0], FIONREAD, block + 14)'
// case poll_undefined -DCALL='poll((struct pollfd *)fresh, 1, 0)'
// case poll_defines -DCALL='polled.fd = zero, polled.events = POLLIN, poll(&polled, 1, 0), kept = polled.revents ? 1 : 2' clean
// case select_undefined -DCALL='select(3, (fd_set *)fresh, 0, 0, &timeout)' clean
// case epoll_undefined -DCALL='epoll_ctl(epoll_create1(0), EPOLL_CTL_ADD, sockets[0], (struct epoll_event *)fresh)'
// case nanosleep_undefined -DCALL='nanosleep((struct timespec *)fresh, 0)' --malloc-fill=00
// case clock_gettime_after -DCALL='syscall(SYS_clock_gettime, CLOCK_MONOTONIC, block + 8)'
// case sigaction_undefined -DCALL='syscall(SYS_rt_sigaction, SIGUSR1, fresh, 0, 8)' --malloc-fill=00
// case sigprocmask_undefined -DCALL='syscall(SYS_rt_sigprocmask, SIG_BLOCK, fresh, 0, 8)' --malloc-fill=00
// case kill_undefined -DCALL='kill(getpid(), undefined() & 0)' clean
// case kill_signal -DCALL='kill(getpid(), undefined() & 0x80 ? 0 : 0), kill(getpid() + (undefined() & 0x40000000), 0)'
// case mmap_undefined -DCALL='mmap(0, 4096 + (undefined() & 1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)'
// case mprotect_undefined -DCALL='mprotect(mapped, 4096, PROT_READ | (undefined() & 2))'
// case mmap_is_defined -DCALL='kept = ((char *)mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))[9] ? 1 : 2' clean
// case pipe_freed -DCALL='free(block), pipe((int *)block), block = 0'
// case getcwd_after -DCALL='syscall(SYS_getcwd, block, 4000)'
// case getcwd_defines -DCALL='syscall(SYS_getcwd, fresh, 64), kept = fresh[0] ? 1 : 2, kept = fresh[63] ? 1 : 2'
// case uname_after -DCALL='uname((struct utsname *)block)'
// case chdir_undefined -DCALL='fresh[3] = 0, chdir(fresh)' --malloc-fill=61
// case rename_over -DCALL='memset(block, 98, 16), rename("nothing", block)'
// case execve_undefined -DCALL='fresh[5] = 0, execve(fresh, (char *[]){fresh, 0}, 0)' --malloc-fill=61
// case execve_argument -DCALL='fresh[5] = 0, execve("/nowhere", (char *[]){"a", fresh, 0}, 0)' --malloc-fill=61
// case exit_undefined -DCALL='_exit(undefined() & 1)' --malloc-fill=00
// case exit_group_status -DCALL='free(block), free(fresh), exit(undefined() & 1)' --malloc-fill=00
// case futex_after -DCALL='syscall(SYS_futex, block + 16, 1, 1, 0, 0, 0)'
// case getrandom_after -DCALL='syscall(SYS_getrandom, block, 20, 0)'
// case getrandom_defines -DCALL='syscall(SYS_getrandom, fresh, 20, 0), kept = fresh[19] == 3 ? 1 : 2' clean
// case getdents_defines -DCALL='kept = syscall(SYS_getdents64, open("/proc/self/task", O_DIRECTORY), room, sizeof(room)), kept = room[18] ? 1 : 2, kept = room[4090] ? 1 : 2'
// case readlink_after -DCALL='readlink("/proc/self/exe", block, 40)'
// case wait4_after -DCALL='fork_and_leave(), wait4(-1, (int *)(block + 14), 0, 0)' 
// case times_after -DCALL='syscall(SYS_times, block)'
// case pread_after -DCALL='pread(zero, block + 1, 16, 0)'
// case pwrite_undefined -DCALL='pwrite(zero, fresh, 5, 0)'
// case truncate_undefined -DCALL='ftruncate(zero, undefined())'
// case lseek_undefined -DCALL='lseek(zero, undefined() & 4, SEEK_SET)'
// case fcntl_lock_undefined -DCALL='fcntl(zero, F_SETLK, fresh)'
// case getrlimit_after -DCALL='syscall(SYS_prlimit64, 0, RLIMIT_CORE, 0, block + 8)'
// case prctl_name_undefined -DCALL='fresh[5] = 0, prctl(PR_SET_NAME, fresh)' --malloc-fill=61
// case xml_write_undefined -DCALL='write(1, fresh, 10)' xml
// case origins_write -DCALL='write(1, fresh, 10)' --track-origins=yes
// case roundtrip_write -DCALL='write(1, fresh, 10)' roundtrip
// case roundtrip_writev -DCALL='vector[0].iov_base = fresh, vector[0].iov_len = 8, writev(1, vector, 1)' roundtrip
// case write_undefined_clang_O2 clang -O2 -DCALL='write(1, fresh, 10)'
// case syscalls_right -DCALL='read(zero, block, 16), write(1, block, 16), stat("/", &status), poll(0, 0, 0)' clean
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile long kept;
struct stat status;

__attribute__((noinline)) static int undefined(void)
{
    int *heap = malloc(4), value = *heap;
    free(heap);
    return value;
}

static void fork_and_leave(void)
{
    pid_t pid = fork();
    if (pid == 0)
        syscall(SYS_exit_group, 3);
    siginfo_t info;
    waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
}

int main(void)
{
    struct {
        char small;
        int large;
    } pair;
    char stack[8], room[4096];
    struct iovec vector[2];
    struct msghdr message;
    struct sockaddr_in address;
    struct pollfd polled;
    struct timeval timeout = {0, 0};
    socklen_t length;
    int sockets[2];
    char *block = malloc(16), *fresh = malloc(64);
    void *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int zero = open("/dev/zero", O_RDWR);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    CALL; // bug
    free(block);
    free(fresh);
    return 0;
}
