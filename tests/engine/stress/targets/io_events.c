// epoll, eventfd, timerfd, inotify, pipes and sockets between threads.
#include "stress.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { EVENTS = 2000 };
static int event_fd, pair[2];

static void *produce(void *arg) {
    for (uint64_t i = 1; i <= EVENTS; i++) {
        CHECK(write(event_fd, &i, 8) == 8);
        CHECK(write(pair[1], &i, 8) == 8);
    }
    return NULL;
}

static void *serve(void *arg) {
    int fd = accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
    CHECK(fd >= 0);
    char block[1000];
    long n;
    while ((n = recv(fd, block, sizeof(block), 0)) > 0)
        for (long sent = 0; sent < n;)
            sent += send(fd, block + sent, (size_t)(n - sent), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static void echo(void) {
    int listening = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    CHECK(bind(listening, (struct sockaddr *)&address, length) == 0 && listen(listening, 5) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&address, &length) == 0);
    pthread_t server = stress_thread(serve, &listening);
    CHECK(connect(fd, (struct sockaddr *)&address, length) == 0);
    uint64_t h = 0, total = 0;
    for (int i = 0; i < 500; i++) {
        uint64_t out[20], in[20];
        for (int k = 0; k < 20; k++)
            out[k] = stress_mix((uint64_t)i, (uint64_t)k);
        CHECK(send(fd, out, sizeof(out), 0) == sizeof(out));
        CHECK(recv(fd, in, sizeof(in), MSG_WAITALL) == sizeof(in));
        CHECK(memcmp(in, out, sizeof(in)) == 0);
        h = stress_mix(h, in[7]);
        total += sizeof(in);
    }
    shutdown(fd, SHUT_WR);
    stress_join(server);
    printf("echo %lu %016lx\n", (unsigned long)total, (unsigned long)h);
    close(fd);
    close(listening);
}

int main(void) {
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    event_fd = eventfd(0, EFD_NONBLOCK);
    CHECK(epoll >= 0 && timer >= 0 && event_fd >= 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    CHECK(timerfd_settime(timer, 0, &every, NULL) == 0);
    int fds[] = {event_fd, pair[0], timer};
    for (int i = 0; i < 3; i++) {
        struct epoll_event e = {EPOLLIN, {.fd = fds[i]}};
        CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e) == 0);
    }
    pthread_t producer = stress_thread(produce, NULL);
    uint64_t sum = 0, messages = 0, ticks = 0, value;
    while (sum < (uint64_t)EVENTS * (EVENTS + 1) / 2 || messages < EVENTS || ticks < 20) {
        struct epoll_event e[4];
        int n = epoll_wait(epoll, e, 4, -1);
        CHECK(n > 0);
        for (int i = 0; i < n; i++) {
            CHECK(read(e[i].data.fd, &value, 8) == 8);
            if (e[i].data.fd == event_fd)
                sum += value;
            else if (e[i].data.fd == timer)
                ticks += value;
            else
                SAME(value, ++messages);
        }
    }
    stress_join(producer);
    printf("sum %lu messages %lu\n", (unsigned long)sum, (unsigned long)messages);
    echo();
    return 0;
}
