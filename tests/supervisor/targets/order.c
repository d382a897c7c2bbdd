// Makes an error before each line that it prints, and prints each line in another way.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char *volatile block;

#define ERROR()                                                                                    \
    do {                                                                                           \
        block = malloc(10);                                                                        \
        block[10] = 1;                                                                             \
        free(block);                                                                               \
    } while (0)

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        abort();
}

static int file_of(const char *text) {
    int fd = memfd_create("text", 0);
    if (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

// One request, at the current position of stdout. False: the kernel permits no ring.
static bool say_by_ring(const char *text) {
    struct io_uring_params params = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (fd < 0)
        return false;
    char *queue = mmap(NULL, params.sq_off.array + sizeof(unsigned), PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, IORING_OFF_SQ_RING);
    struct io_uring_sqe *request =
        mmap(NULL, sizeof *request, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    *request = (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                                     .fd = 1,
                                     .addr = (unsigned long)text,
                                     .len = (unsigned)strlen(text),
                                     .off = -1ul};
    *(unsigned *)(queue + params.sq_off.array) = 0;
    ERROR();
    __atomic_store_n((unsigned *)(queue + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    return syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1;
}

static void say_in_many_ways(void) {
    struct iovec part = {"writev\n", 7};
    ERROR();
    say("write\n");
    ERROR();
    if (writev(1, &part, 1) < 0)
        abort();
    ERROR();
    if (sendfile(1, file_of("sendfile\n"), NULL, 9) < 0)
        abort();
    // Only a pipe can be spliced into.
    int fd = file_of("splice\n");
    ERROR();
    if (splice(fd, NULL, 1, NULL, 7, 0) < 0)
        say("splice\n");
    part = (struct iovec){"vmsplice\n", 9};
    ERROR();
    if (vmsplice(1, &part, 1, 0) < 0)
        say("vmsplice\n");
    int other = dup(1);
    ERROR();
    dprintf(other, "dup\n");
    if (!say_by_ring("ring\n")) {
        ERROR();
        say("ring\n");
    }
}

static void run_child(void (*child)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void fork_and_say(void) {
    say("child\n");
    ERROR();
    _exit(0);
}

static void crash(void) {
    ERROR();
    raise(SIGSEGV);
}

static void become_echo(void) {
    ERROR();
    execl("/bin/echo", "echo", "exec", NULL);
}

static void say_of_children(void) {
    ERROR();
    run_child(fork_and_say);
    say("waited\n");
    run_child(crash);
    say("crashed\n");
    run_child(become_echo);
}

// The log is a pipe that is full, and only this process reads it.
static void drain_own_log(int from, int to) {
    static char buffer[65536];
    fcntl(to, F_SETFL, O_NONBLOCK);
    while (write(to, buffer, sizeof buffer) > 0)
        ;
    while (write(to, buffer, 1) > 0)
        ;
    fcntl(to, F_SETFL, 0);
    for (int i = 0; i < 100; i++) {
        ERROR();
        say("line\n");
    }
    close(to);
    struct pollfd more = {.fd = from, .events = POLLIN};
    while (poll(&more, 1, 0) > 0 && read(from, buffer, sizeof buffer) > 0)
        ;
    say("drained\n");
}

int main(int argc, char **argv) {
    if (strcmp(argv[1], "ways") == 0)
        say_in_many_ways();
    else if (strcmp(argv[1], "children") == 0)
        say_of_children();
    else
        drain_own_log(atoi(argv[2]), atoi(argv[3]));
    return 0;
}
