// Sends lines to a server as fast as it answers: load SOCKET THREADS SECONDS
//
// Goes on until enough is answered, however slow the server is. Prints how many answers were right.
// Ends early without complaint when the server goes away; an answer that is wrong is an error.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { ENOUGH = 1000 };

static atomic_long answered, wrong;
static const char *path;
static double seconds;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int ask(int server, const char *line, size_t length)
{
    char expected[64], answer[64];
    unsigned sum = 0;
    for (size_t i = 0; i < length - 1; i++)
        sum = sum * 31 + (unsigned char)line[i];
    int size = snprintf(expected, sizeof(expected), "%zu %u\n", length - 1, sum), filled = 0;
    if (send(server, line, length, MSG_NOSIGNAL) != (ssize_t)length)
        return 0;
    while (filled < size) {
        ssize_t got = read(server, answer + filled, sizeof(answer) - filled);
        if (got <= 0)
            return 0;
        filled += got;
    }
    if (filled != size || memcmp(answer, expected, size) != 0)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&answered, 1);
    return 1;
}

static void *hit(void *argument)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof(address)))
        return NULL;
    char line[256];
    double end = now() + seconds;
    for (long number = (long)argument; now() < end || answered < ENOUGH; number++) {
        size_t length = 1 + number * 7 % 200;
        for (size_t i = 0; i < length; i++)
            line[i] = 'a' + (number + i) % 26;
        line[length] = '\n';
        if (!ask(server, line, length + 1))
            break;
    }
    close(server);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    path = argv[1];
    seconds = atof(argv[3]);
    int count = atoi(argv[2]);
    pthread_t threads[64];
    for (long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, hit, (void *)(i * 1000));
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%ld answered, %ld wrong\n", (long)answered, (long)wrong);
    return wrong != 0;
}
