// A small HTTP server on the loopback interface that loses 100 bytes with each request.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal) {
    stopped = 1;
}

static char *lose(void) {
    return malloc(100);
}

static void answer(int client) {
    static const char reply[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
    char request[4096];
    if (read(client, request, sizeof request) > 0) {
        char *lost = lose();
        memset(lost, 0, 100);
        if (write(client, reply, sizeof reply - 1) < 0)
            perror("write");
    }
    close(client);
}

int main(int argc, char **argv) {
    // The signal comes only while it waits: between a look at `stopped` and accept it would be
    // lost.
    struct sigaction action = {.sa_handler = stop};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    sigaction(SIGINT, &action, NULL);
    int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    sleep(argc > 2 ? atoi(argv[2]) : 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 64))
        return 3;
    puts("now serving");
    fflush(stdout);
    while (!stopped) {
        struct pollfd wait = {.fd = listening, .events = POLLIN};
        if (ppoll(&wait, 1, NULL, &before) < 1)
            continue;
        int client = accept(listening, NULL, NULL);
        if (client >= 0)
            answer(client);
    }
    return 0;
}
