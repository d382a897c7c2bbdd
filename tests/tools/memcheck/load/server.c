// A threaded server with a slow leak, and a few other bugs on the way.
//
//     server SOCKET COUNTS [tidy]
//
// Answers every line that it reads with its length and a checksum. Every 50th request of a thread
// loses a block. COUNTS is a file of two numbers that the server keeps up to date, even when it is
// killed: requests answered, blocks lost. With `tidy`, SIGINT makes it end its threads and return
// from main; without, it dies by the signal.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MAX_CLIENTS = 64, LOST_BYTES = 40, LOSE_EVERY = 50 };

struct counts {
    atomic_long requests, lost;
};
struct answer {
    char *text;
    size_t length;
    struct answer *before;
};

static struct counts *counts;
static atomic_int stop_now;
static int listener;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct answer *history; // the last answers of all threads
static int history_length;
volatile int kept; // so that no access is left out

// Whoever is in accept, or is about to be, comes out of it; the signal may be any thread's.
static void stop(int number)
{
    stop_now = 1;
    shutdown(listener, SHUT_RDWR);
}

__attribute__((noinline)) static void lose(void)
{
    char *block = malloc(LOST_BYTES); // leak
    memset(block, 'l', LOST_BYTES);
    atomic_fetch_add(&counts->lost, 1);
}

// Three bugs, once each.
__attribute__((noinline)) static void careless(const char *line, size_t length)
{
    static atomic_int done;
    if (atomic_exchange(&done, 1))
        return;
    char *copy = malloc(length);
    memcpy(copy, line, length);
    kept = *(volatile char *)(copy + length); // bug
    int *flags = malloc(8);
    if (flags[1] == 3) // bug
        kept = 1;
    free(flags);
    free(copy);
    kept = *(volatile char *)copy; // bug
}

static void remember(char *text, size_t length)
{
    struct answer *answer = malloc(sizeof(*answer)), *old = NULL;
    answer->text = text;
    answer->length = length;
    pthread_mutex_lock(&mutex);
    answer->before = history;
    history = answer;
    if (++history_length > 100) {
        struct answer *last = history;
        for (int i = 0; i < 50; i++)
            last = last->before;
        old = last->before;
        last->before = NULL;
        history_length = 51;
    }
    pthread_mutex_unlock(&mutex);
    while (old) {
        struct answer *next = old->before;
        free(old->text);
        free(old);
        old = next;
    }
}

static int serve_line(int client, const char *line, size_t length, long number)
{
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + (unsigned char)line[i];
    char *text = malloc(64);
    int size = snprintf(text, 64, "%zu %u\n", length, sum);
    careless(line, length);
    if (number % LOSE_EVERY == 0)
        lose();
    int sent = write(client, text, size) == size;
    remember(text, size);
    atomic_fetch_add(&counts->requests, 1);
    return sent;
}

static void *serve(void *argument)
{
    int client = (int)(long)argument;
    char *buffer = malloc(4096);
    size_t filled = 0;
    long number = 0;
    while (!stop_now) {
        ssize_t got = read(client, buffer + filled, 4096 - filled);
        if (got <= 0)
            break;
        filled += got;
        char *start = buffer, *end;
        while ((end = memchr(start, '\n', buffer + filled - start))) {
            if (!serve_line(client, start, end - start, ++number))
                break;
            start = end + 1;
        }
        filled = buffer + filled - start;
        memmove(buffer, start, filled);
    }
    free(buffer);
    return NULL;
}

static void forget_history(void)
{
    while (history) {
        struct answer *next = history->before;
        free(history->text);
        free(history);
        history = next;
    }
}

int main(int argc, char **argv)
{
    int file = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (argc < 3 || file < 0 || ftruncate(file, sizeof(*counts)))
        return 2;
    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", argv[1]);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 16))
        return 3;
    if (argc > 3) {
        struct sigaction action = {.sa_handler = stop};
        sigaction(SIGINT, &action, NULL);
    }
    // Where it is found, it listens.
    if (rename(address.sun_path, argv[1]))
        return 3;
    pthread_t threads[MAX_CLIENTS];
    int clients[MAX_CLIENTS], count = 0;
    while (!stop_now && count < MAX_CLIENTS) {
        int client = accept(listener, NULL, NULL);
        if (client < 0)
            break;
        clients[count] = client;
        pthread_create(&threads[count++], NULL, serve, (void *)(long)client);
    }
    for (int i = 0; i < count; i++) {
        shutdown(clients[i], SHUT_RDWR);
        pthread_join(threads[i], NULL);
    }
    forget_history();
    printf("%ld requests, %ld lost\n", (long)counts->requests, (long)counts->lost);
    return 0;
}
