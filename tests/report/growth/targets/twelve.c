// A server with twelve ways to use memory: eight that grow with every request, four that do not.
// The driver reads the lines marked "grows: NAME". A thread serves each connection.
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long count;

struct entry {
    struct entry *next;
    unsigned long key;
    char text[480];
};

static void *filled(size_t size)
{
    return memset(malloc(size), 1, size); // grows: any
}

// ---- what grows ----

static struct entry **buckets;
static size_t bucket_count, entry_count;

__attribute__((noinline)) static void grow_cache(void)
{
    if (entry_count == bucket_count) {
        size_t more = bucket_count ? bucket_count * 2 : 16;
        struct entry **larger = calloc(more, sizeof *larger);
        if (buckets)
            memcpy(larger, buckets, bucket_count * sizeof *buckets);
        free(buckets);
        buckets = larger;
        bucket_count = more;
    }
    buckets[entry_count++] = memset(malloc(sizeof(struct entry)), 1, sizeof(struct entry)); // grows: cache
}

struct listener {
    struct listener *next;
    void (*call)(void *);
    char closure[400];
};
static struct listener *listeners;

__attribute__((noinline)) static void subscribe(void)
{
    struct listener *listener = malloc(sizeof *listener); // grows: listeners
    *listener = (struct listener){.next = listeners};
    listeners = listener;
}

struct node {
    struct node *other;
    char data[300];
};

__attribute__((noinline)) static void make_cycle(void)
{
    struct node *a = malloc(sizeof *a); // grows: cycles
    struct node *b = malloc(sizeof *b);
    a->other = b;
    b->other = a;
    *(struct node *volatile *)&(struct node *){0} = a;
}

static char *text;
static size_t text_size, text_room;

__attribute__((noinline)) static void append(void)
{
    if (text_size + 400 > text_room) {
        text_room = text_room ? text_room * 2 : 1024;
        text = realloc(text, text_room); // grows: buffers
    }
    memset(text + text_size, 3, 400);
    text_size += 400;
}

static __thread char **seen;
static __thread size_t seen_count, seen_room;

__attribute__((noinline)) static void note_on_thread(void)
{
    if (seen_count == seen_room)
        seen = realloc(seen, (seen_room = seen_room ? seen_room * 2 : 16) * sizeof *seen);
    seen[seen_count++] = memset(malloc(450), 4, 450); // grows: threads
}

static struct entry *queue_first, **queue_last = &queue_first;

__attribute__((noinline)) static void enqueue(void)
{
    struct entry *entry = calloc(1, sizeof *entry); // grows: channel
    *queue_last = entry;
    queue_last = &entry->next;
}

struct task {
    struct task *next;
    char state[350];
};
static struct task *tasks;

__attribute__((noinline)) static void spawn_task(void)
{
    struct task *task = calloc(1, sizeof *task); // grows: tasks
    task->next = tasks;
    tasks = task;
}

__attribute__((noinline)) static void forget_box(void)
{
    *(char *volatile *)&(char *){0} = memset(malloc(512), 7, 512); // grows: boxes
}

// ---- what does not ----

static struct entry *bounded[200];

__attribute__((noinline)) static void keep_bounded(void)
{
    struct entry **place = &bounded[count % 200];
    free(*place);
    *place = calloc(1, sizeof **place);
}

static char *pool[16];
static unsigned pool_count;

__attribute__((noinline)) static void use_pool(void)
{
    char *buffer = pool_count ? pool[--pool_count] : malloc(16384);
    memset(buffer, 9, 1000);
    if (pool_count < 16)
        pool[pool_count++] = buffer;
}

static char *table[2000];

__attribute__((noinline)) static void warm_up(void)
{
    for (unsigned i = 0; i < 2000 && !table[1999]; i++)
        table[i] = filled(60);
    free(filled(80));
}

static struct entry *sessions;

__attribute__((noinline)) static void open_session(void)
{
    struct entry *session = calloc(1, sizeof *session);
    session->next = sessions;
    sessions = session;
}

__attribute__((noinline)) static void stop(void)
{
    for (struct entry *next; sessions; sessions = next) {
        next = sessions->next;
        free(sessions);
    }
}

// ---- serving ----

static const struct {
    const char *name;
    void (*serve)(void);
} endpoints[] = {
    {"cache", grow_cache},  {"listeners", subscribe}, {"cycles", make_cycle},
    {"buffers", append},    {"threads", note_on_thread}, {"channel", enqueue},
    {"tasks", spawn_task},  {"boxes", forget_box},    {"bounded", keep_bounded},
    {"pool", use_pool},     {"warmup", warm_up},      {"load", open_session},
    {"stop", stop},
};

static void answer(const char *path, char *out, size_t size)
{
    char *copy = strdup(path), *line = filled(200);
    pthread_mutex_lock(&lock);
    count++;
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++)
        if (strcmp(endpoints[i].name, copy) == 0)
            endpoints[i].serve();
    pthread_mutex_unlock(&lock);
    snprintf(line, 200, "%s\n", copy);
    snprintf(out, size, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(line), line);
    free(line);
    free(copy);
}

static void *serve(void *connection)
{
    int fd = (int)(intptr_t)connection;
    FILE *in = fdopen(fd, "r");
    char line[1000], path[100] = "", out[600];
    while (fgets(line, sizeof line, in)) {
        sscanf(line, "GET /%99s", path);
        if (strcmp(line, "\r\n") != 0)
            continue;
        answer(path, out, sizeof out);
        if (write(fd, out, strlen(out)) < 0)
            break;
    }
    fclose(in);
    return NULL;
}

static void leave(int signal)
{
    exit(0);
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    signal(SIGINT, leave);
    signal(SIGPIPE, SIG_IGN);
    if (bind(server, (struct sockaddr *)&address, length) < 0 || listen(server, 64) < 0)
        return 1;
    getsockname(server, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (int fd; (fd = accept(server, NULL, NULL)) >= 0;) {
        pthread_t thread;
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
    return 0;
}
