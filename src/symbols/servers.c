#include "symbols/servers.h"

#include "symbols/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/vector.h"

enum {
    WAIT_MOST_MS = 2000, /* in a run */
    WAIT_STEP_MS = 50,
    SILENT_SECONDS = 600, /* how long a note counts */
    PROGRESS_AFTER_MS = 200,
};

struct known {
    uint32_t id_size;
    uint8_t id[ASKER_ID_MOST];
    char *path; /* NULL: the servers do not have it */
};

struct servers {
    const struct symbols_options *options;
    pid_t asker;
    int socket;
    struct known *known;
    size_t known_count;
    bool is_gone; /* the asker has ended */
};

/* Of the process, and not of one `servers`: a run may have several sets of symbols, and the user
 * waits for all of them together. */
static int wait_left_ms = WAIT_MOST_MS;
static bool has_answered, has_said;

/* ------------------------------------------------------------------ the note */

static const char *urls(void) {
    const char *value = getenv("DEBUGINFOD_URLS");
    return value ? value + strspn(value, " ") : "";
}

/* The file that contains the servers that did not answer. NULL: there is no place for one. */
static char *note_path(void) {
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *path;
    if ((!cache || !*cache) && (!home || !*home))
        return NULL;
    bool is_plain = cache && *cache;
    return asprintf(&path, "%s%s/quern-silent-servers", is_plain ? cache : home,
                    is_plain ? "" : "/.cache") < 0
               ? NULL
               : path;
}

static bool were_silent(void) {
    char text[4096] = "";
    struct stat status;
    char *path = note_path();
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    free(path);
    if (fd < 0)
        return false;
    bool is_fresh = fstat(fd, &status) == 0 && time(NULL) - status.st_mtime < SILENT_SECONDS &&
                    read(fd, text, sizeof text - 1) >= 0;
    close(fd);
    return is_fresh && strcmp(text, urls()) == 0;
}

static void note_silence(void) {
    char *path = note_path();
    if (!path)
        return;
    char *slash = strrchr(path, '/');
    *slash = 0;
    mkdir(path, 0700);
    *slash = '/';
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0) {
        fd_write_all(fd, urls(), strlen(urls()));
        close(fd);
    }
    free(path);
}

static void note_answer(void) {
    char *path = has_answered ? NULL : note_path();
    has_answered = true;
    if (path)
        unlink(path);
    free(path);
}

/* ------------------------------------------------------------------ the asker */

struct servers *servers_new(const struct symbols_options *options) {
    int ends[2];
    if (!options->debuginfod || options->own_debug_only || !*urls() ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return NULL;
    struct servers *servers = calloc(1, sizeof *servers);
    pid_t asker = servers ? fork() : -1;
    if (asker == 0)
        asker_run(ends[1], options->extra_debug_path);
    close(ends[1]);
    if (asker < 0) {
        close(ends[0]);
        free(servers);
        return NULL;
    }
    *servers =
        (struct servers){.options = options, .asker = asker, .socket = fd_move_high(ends[0])};
    if (were_silent())
        wait_left_ms = 0;
    return servers;
}

void servers_free(struct servers *servers) {
    if (!servers)
        return;
    kill(servers->asker, SIGTERM);
    waitpid(servers->asker, NULL, 0);
    close(servers->socket);
    for (size_t i = 0; i < servers->known_count; i++)
        free(servers->known[i].path);
    free(servers->known);
    free(servers);
}

static void ask(struct servers *servers, const struct asker_question *question) {
    send(servers->socket, question, sizeof *question, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool fill_path(char to[PATH_MAX], const char *path) {
    size_t length = strlen(path);
    if (length < PATH_MAX)
        memcpy(to, path, length + 1);
    return length < PATH_MAX;
}

void servers_expect(struct servers *servers, const char *path) {
    struct asker_question question = {0};
    if (servers && fill_path(question.path, path))
        ask(servers, &question);
}

/* ------------------------------------------------------------------ answers */

static void take_answer(struct servers *servers, const struct asker_answer *answer) {
    /* That a server has no such file is an answer. */
    if (answer->result == 0 || answer->result == -ENOENT)
        note_answer();
    struct known *known = vector_push(servers->known, servers->known_count);
    *known = (struct known){.id_size = answer->id_size};
    memcpy(known->id, answer->id, sizeof known->id);
    if (answer->result == 0)
        known->path = strdup(answer->path);
}

static void take_answers(struct servers *servers) {
    static struct asker_answer answer;
    ssize_t size;
    while ((size = recv(servers->socket, &answer, sizeof answer, MSG_DONTWAIT)) == sizeof answer)
        take_answer(servers, &answer);
    servers->is_gone |= size >= 0 || (errno != EAGAIN && errno != EINTR);
}

static const struct known *find(const struct servers *servers, const uint8_t *id, size_t size) {
    for (size_t i = 0; i < servers->known_count; i++)
        if (servers->known[i].id_size == size && memcmp(servers->known[i].id, id, size) == 0)
            return &servers->known[i];
    return NULL;
}

/* ------------------------------------------------------------------ waiting */

/* The user, or whoever stops the run, does not wait. Signals are blocked and read as events. */
static bool is_asked_to_stop(void) {
    static const int stopping[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < sizeof stopping / sizeof *stopping; i++)
        if (sigismember(&pending, stopping[i]))
            return true;
    return false;
}

static void show_progress(const struct servers *servers, const char *object) {
    char *text;
    if (!servers->options->progress)
        return;
    if (asprintf(&text, "waiting for debug information of %s from %s", object, urls()) < 0)
        return;
    servers->options->progress(servers->options->note_context, text);
    free(text);
}

static void say_once(const struct servers *servers) {
    char *text;
    if (has_said || !servers->options->say)
        return;
    has_said = true;
    if (asprintf(&text,
                 "%s: no answer in time; lines and inlined calls of some libraries are not shown\n"
                 "(--enable-debuginfod=no, or an empty DEBUGINFOD_URLS: servers are not asked)",
                 urls()) < 0)
        return;
    servers->options->say(servers->options->note_context, text);
    free(text);
}

static const struct known *wait_for(struct servers *servers, const uint8_t *id, size_t size,
                                    const char *object) {
    const struct known *known = NULL;
    int64_t begin = clock_milliseconds(), passed = 0;
    bool is_shown = false;
    while (!(known = find(servers, id, size)) && !servers->is_gone && passed < wait_left_ms) {
        if (is_asked_to_stop()) {
            wait_left_ms = 0;
            break;
        }
        if (!is_shown && passed > PROGRESS_AFTER_MS) {
            show_progress(servers, object);
            is_shown = true;
        }
        struct pollfd look = {.fd = servers->socket, .events = POLLIN};
        poll(&look, 1, WAIT_STEP_MS);
        take_answers(servers);
        passed = clock_milliseconds() - begin;
    }
    if (is_shown && servers->options->progress)
        servers->options->progress(servers->options->note_context, NULL);
    wait_left_ms = passed < wait_left_ms ? wait_left_ms - (int)passed : 0;
    return known;
}

int servers_find(struct servers *servers, const uint8_t *id, size_t id_size, const char *object,
                 char **found_name) {
    if (!servers || id_size == 0 || id_size > ASKER_ID_MOST)
        return -1;
    take_answers(servers);
    const struct known *known = find(servers, id, id_size);
    if (!known && !servers->is_gone) {
        struct asker_question question = {.id_size = (uint32_t)id_size};
        memcpy(question.id, id, id_size);
        ask(servers, &question);
        known = wait_for(servers, id, id_size, object);
    }
    if (!known && !servers->is_gone) {
        if (!has_answered && wait_left_ms == 0)
            note_silence();
        say_once(servers);
    }
    int fd = known && known->path ? open(known->path, O_RDONLY | O_CLOEXEC) : -1;
    *found_name = fd < 0 ? NULL : strdup(known->path);
    return fd;
}
