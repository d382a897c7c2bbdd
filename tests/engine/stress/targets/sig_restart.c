// What every blocking system call does when a handler runs during it, with and without SA_RESTART:
// the table of signal(7). A helper thread sends signals while the call waits, each one acknowledged
// by the handler: until the call returns where it must, else a few, and then it releases the call.
#include "stress.h"
#include <fcntl.h>
#include <linux/futex.h>

#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

enum { SIGNALS = 4 };

static volatile int handled, finished, is_restarting;
static pthread_t main_thread;
static pid_t main_tid;
static int pipe_fd[2], full_fd[2], socket_fd[2], event_fd, timer_fd, epoll_fd, message_queue,
    semaphore_set, lock_fd[2], listen_fd, timeout_fd[2];
static char lock_path[64];
static int futex_word;
static sem_t semaphore;
static const struct timespec long_time = {3000, 0};
static char byte;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
}

static long block_read(void) {
    return read(pipe_fd[0], &byte, 1);
}
static void release_pipe(void) {
    CHECK(write(pipe_fd[1], "x", 1) == 1);
}
static long block_write(void) {
    return write(full_fd[1], "x", 1);
}
static void release_write(void) {
    char page[PAGE];
    CHECK(read(full_fd[0], page, sizeof(page)) > 0);
}
static long block_recv(void) {
    return recv(socket_fd[0], &byte, 1, 0);
}
static void release_socket(void) {
    CHECK(send(socket_fd[1], "x", 1, 0) == 1);
}
static long block_recv_timeout(void) {
    return recv(timeout_fd[0], &byte, 1, 0);
}
static void release_timeout(void) {
    CHECK(send(timeout_fd[1], "x", 1, 0) == 1);
}
static long block_accept(void) {
    int fd = accept(listen_fd, NULL, NULL);
    if (fd >= 0)
        close(fd);
    return fd;
}
static void release_accept(void) {
    struct sockaddr_storage address;
    socklen_t length = sizeof(address);
    CHECK(getsockname(listen_fd, (struct sockaddr *)&address, &length) == 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(fd, (struct sockaddr *)&address, length) == 0);
    close(fd);
}
static long block_wait(void) {
    int status;
    return waitpid(-1, &status, 0);
}
static pid_t waiting_child;
static void prepare_wait(void) {
    waiting_child = fork();
    if (waiting_child == 0) {
        for (;;)
            pause();
    }
}
static void release_wait(void) {
    CHECK(kill(waiting_child, SIGKILL) == 0);
}
static long block_nanosleep(void) {
    return nanosleep(&long_time, NULL);
}
static long block_clock_nanosleep(void) {
    int error = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL);
    errno = error;
    return error ? -1 : 0;
}
static long block_poll(void) {
    struct pollfd p = {pipe_fd[0], POLLIN, 0};
    return poll(&p, 1, -1);
}
static long block_ppoll(void) {
    struct pollfd p = {pipe_fd[0], POLLIN, 0};
    return ppoll(&p, 1, &long_time, NULL);
}
static long block_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipe_fd[0], &set);
    return select(pipe_fd[0] + 1, &set, NULL, NULL, NULL);
}
static long block_pselect(void) {
    fd_set set;
    sigset_t none;
    sigemptyset(&none);
    FD_ZERO(&set);
    FD_SET(pipe_fd[0], &set);
    return pselect(pipe_fd[0] + 1, &set, NULL, NULL, NULL, &none);
}
static long block_epoll(void) {
    struct epoll_event event;
    return epoll_wait(epoll_fd, &event, 1, -1);
}
static long block_futex(void) {
    return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}
static long block_futex_timeout(void) {
    return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &long_time, NULL, 0);
}
static void release_futex(void) {
    while (syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) != 1)
        stress_sleep_us(100);
}
static long block_sem_wait(void) {
    return sem_wait(&semaphore);
}
static void release_sem(void) {
    CHECK(sem_post(&semaphore) == 0);
}
static long block_eventfd(void) {
    uint64_t value;
    return read(event_fd, &value, 8);
}
static void release_eventfd(void) {
    uint64_t one = 1;
    CHECK(write(event_fd, &one, 8) == 8);
}
static long block_timerfd(void) {
    uint64_t value;
    return read(timer_fd, &value, 8);
}
static void release_timerfd(void) {
    struct itimerspec soon = {{0, 0}, {0, 1000}};
    CHECK(timerfd_settime(timer_fd, 0, &soon, NULL) == 0);
}
static long block_msgrcv(void) {
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(message_queue, &message, 8, 0, 0);
}
static void release_msgrcv(void) {
    struct {
        long type;
        char text[8];
    } message = {1, "hello"};
    CHECK(msgsnd(message_queue, &message, 8, 0) == 0);
}
static long block_semop(void) {
    struct sembuf operation = {0, -1, 0};
    return semop(semaphore_set, &operation, 1);
}
static void release_semop(void) {
    struct sembuf operation = {0, 1, 0};
    CHECK(semop(semaphore_set, &operation, 1) == 0);
}
static void prepare_flock(void) {
    CHECK(flock(lock_fd[1], LOCK_EX) == 0);
}
static long block_flock(void) {
    return flock(lock_fd[0], LOCK_EX);
}
static void release_flock(void) {
    CHECK(flock(lock_fd[1], LOCK_UN) == 0);
}
static void after_flock(void) {
    flock(lock_fd[0], LOCK_UN);
    flock(lock_fd[1], LOCK_UN);
}
static long block_lockw(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    return fcntl(lock_fd[0], F_OFD_SETLKW, &lock);
}
static void prepare_lockw(void) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    CHECK(fcntl(lock_fd[1], F_OFD_SETLK, &lock) == 0);
}
static void release_lockw(void) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    CHECK(fcntl(lock_fd[1], F_OFD_SETLK, &lock) == 0);
}
static void after_lockw(void) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    fcntl(lock_fd[0], F_OFD_SETLK, &lock);
    fcntl(lock_fd[1], F_OFD_SETLK, &lock);
}
static long block_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &long_time);
}
static long block_pause(void) {
    return pause();
}
static long block_sigsuspend(void) {
    sigset_t none;
    sigemptyset(&none);
    return sigsuspend(&none);
}
static long block_open_fifo(void) {
    int fd = open(lock_path, O_RDONLY);
    if (fd >= 0)
        close(fd);
    return fd;
}
static void release_fifo(void) {
    int fd;
    do
        fd = open(lock_path, O_WRONLY | O_NONBLOCK);
    while (fd < 0);
    close(fd);
}

static const struct {
    const char *name;
    void (*prepare)(void);
    long (*block)(void);
    void (*release)(void); // NULL: it is never restarted
    void (*after)(void);
} calls[] = {
    {"read", NULL, block_read, release_pipe, NULL},
    {"write", NULL, block_write, release_write, NULL},
    {"recv", NULL, block_recv, release_socket, NULL},
    {"recv SO_RCVTIMEO", NULL, block_recv_timeout, release_timeout, NULL},
    {"accept", NULL, block_accept, release_accept, NULL},
    {"wait4", prepare_wait, block_wait, release_wait, NULL},
    {"nanosleep", NULL, block_nanosleep, NULL, NULL},
    {"clock_nanosleep", NULL, block_clock_nanosleep, NULL, NULL},
    {"poll", NULL, block_poll, NULL, NULL},
    {"ppoll", NULL, block_ppoll, NULL, NULL},
    {"select", NULL, block_select, NULL, NULL},
    {"pselect", NULL, block_pselect, NULL, NULL},
    {"epoll_wait", NULL, block_epoll, NULL, NULL},
    {"futex", NULL, block_futex, release_futex, NULL},
    {"futex timeout", NULL, block_futex_timeout, release_futex, NULL},
    {"sem_wait", NULL, block_sem_wait, release_sem, NULL},
    {"eventfd", NULL, block_eventfd, release_eventfd, NULL},
    {"timerfd", NULL, block_timerfd, release_timerfd, NULL},
    {"msgrcv", NULL, block_msgrcv, release_msgrcv, NULL},
    {"semop", NULL, block_semop, release_semop, NULL},
    {"flock", prepare_flock, block_flock, release_flock, after_flock},
    {"F_OFD_SETLKW", prepare_lockw, block_lockw, release_lockw, after_lockw},
    {"open fifo", NULL, block_open_fifo, release_fifo, NULL},
    {"sigtimedwait", NULL, block_sigtimedwait, NULL, NULL},
    {"pause", NULL, block_pause, NULL, NULL},
    {"sigsuspend", NULL, block_sigsuspend, NULL, NULL},
};

// Whether the main thread waits in the kernel.
static bool is_waiting(void) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", main_tid);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    CHECK(size > 0);
    text[size] = 0;
    return strncmp(strrchr(text, ')'), ") S", 3) == 0;
}

static void await_waiting(void) {
    while (!finished && !is_waiting())
        stress_sleep_us(100);
}

static void *disturb(void *arg) {
    void (*release)(void) = calls[(size_t)arg].release;
    bool is_cut_short = !is_restarting || !release;
    for (int i = 0; is_cut_short || i < SIGNALS; i++) {
        await_waiting();
        int before = handled;
        if (finished)
            return NULL;
        CHECK(pthread_kill(main_thread, SIGUSR1) == 0);
        while (handled == before)
            stress_sleep_us(50);
    }
    await_waiting();
    if (!finished)
        release();
    return NULL;
}

static void prepare_all(void) {
    char block[PAGE];
    memset(block, 0, sizeof(block));
    CHECK(pipe(pipe_fd) == 0 && pipe(full_fd) == 0);
    CHECK(fcntl(full_fd[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(full_fd[1], block, sizeof(block)) > 0)
        ;
    CHECK(fcntl(full_fd[1], F_SETFL, 0) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fd) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, timeout_fd) == 0);
    struct timeval limit = {3000, 0};
    CHECK(setsockopt(timeout_fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    CHECK((event_fd = eventfd(0, 0)) >= 0);
    CHECK((timer_fd = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
    CHECK((epoll_fd = epoll_create1(0)) >= 0);
    CHECK((message_queue = msgget(IPC_PRIVATE, 0600)) >= 0);
    CHECK((semaphore_set = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    CHECK((lock_fd[0] = open("/tmp", O_TMPFILE | O_RDWR, 0600)) >= 0);
    snprintf(lock_path, sizeof(lock_path), "/proc/self/fd/%d", lock_fd[0]);
    CHECK((lock_fd[1] = open(lock_path, O_RDWR)) >= 0);
    snprintf(lock_path, sizeof(lock_path), "/tmp/quern-stress-fifo-%d", getpid());
    unlink(lock_path);
    CHECK(mkfifo(lock_path, 0600) == 0);
    CHECK((listen_fd = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
    struct sockaddr any = {.sa_family = AF_UNIX};
    CHECK(bind(listen_fd, &any, sizeof(sa_family_t)) == 0 && listen(listen_fd, 1) == 0);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
}

int main(void) {
    main_thread = pthread_self();
    main_tid = stress_tid();
    prepare_all();
    for (size_t i = 0; i < LENGTH(calls); i++) {
        for (int restart = 0; restart < 2; restart++) {
            stress_handle(SIGUSR1, on_signal, restart ? SA_RESTART : 0);
            finished = 0;
            is_restarting = restart;
            if (calls[i].prepare)
                calls[i].prepare();
            pthread_t thread = stress_thread(disturb, (void *)i);
            errno = 0;
            long result = calls[i].block();
            int error = errno;
            finished = 1;
            stress_join(thread);
            printf("%-18s %-11s %s\n", calls[i].name, restart ? "SA_RESTART" : "",
                   result >= 0      ? "goes on"
                   : error == EINTR ? "EINTR"
                                    : strerror(error));
            if (calls[i].after)
                calls[i].after();
            if (calls[i].prepare == prepare_wait) {
                kill(waiting_child, SIGKILL);
                waitpid(waiting_child, NULL, 0);
            }
        }
    }
    unlink(lock_path);
    msgctl(message_queue, IPC_RMID, NULL);
    semctl(semaphore_set, 0, IPC_RMID);
    return 0;
}
