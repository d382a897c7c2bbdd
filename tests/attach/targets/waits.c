// Threads that wait in calls that end with EINTR when a debugger stops them. At the end of stdin it
// prints how many calls have ended so.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_int interrupted;

static void note(int result) {
    if (result < 0 && errno == EINTR)
        interrupted++;
}

static void *in_epoll(void *argument) {
    struct epoll_event event;
    int fd = epoll_create1(0);
    for (;;)
        note(epoll_wait(fd, &event, 1, -1));
}

static void *in_receive(void *argument) {
    int pair[2];
    char byte;
    struct timeval limit = {1000, 0};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (;;)
        note((int)recv(pair[0], &byte, 1, 0));
}

static void *in_semaphore(void *argument) {
    int id = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {0, -1, 0};
    *(int *)argument = id;
    for (;;) {
        int result = semop(id, &take, 1);
        note(result);
        if (result < 0 && errno != EINTR)
            return NULL;
    }
}

static void *in_signal(void *argument) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    for (;;)
        note(sigtimedwait(&set, NULL, &(struct timespec){1000, 0}));
}

int main(void) {
    pthread_t thread;
    char byte, line[32];
    static int semaphore = -1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, in_epoll, NULL);
    pthread_create(&thread, NULL, in_receive, NULL);
    pthread_create(&thread, NULL, in_semaphore, &semaphore);
    pthread_create(&thread, NULL, in_signal, NULL);
    usleep(200000);
    if (write(1, "ready\n", 6) < 0)
        return 1;
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        interrupted++;
    int size = snprintf(line, sizeof line, "%d\n", interrupted);
    if (semaphore >= 0)
        semctl(semaphore, 0, IPC_RMID);
    return write(1, line, (size_t)size) < 0;
}
