#include "supervisor/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "base/text.h"

#define DEFAULT_LOG_PORT 1500

// A place lines go to. With %p in the file's name there is one per process, else one in all.
struct sink {
    int pid;
    int fd;
    bool broken; // said so on stderr already
    char *name;
};

static struct log_settings settings;
static struct sink *sinks;
static size_t sink_count;
static struct timespec start;
static bool has_failed; // to write a profile

void log_complain(const char *format, ...) {
    struct text line = {0};
    va_list arguments;
    text_string(&line, "quern: ");
    va_start(arguments, format);
    text_vformat(&line, format, arguments);
    va_end(arguments);
    text_char(&line, '\n');
    fd_write_all(2, line.bytes, line.size);
    text_free(&line);
}

void log_cannot_write(const char *path, const char *reason) {
    has_failed = true;
    log_complain("cannot write '%s': %s", path, reason);
}

bool log_has_failed(void) {
    return has_failed;
}

static struct sink *add_sink(int pid, int fd, char *name) {
    sinks = base_reallocate(sinks, (sink_count + 1) * sizeof *sinks);
    sinks[sink_count] = (struct sink){.pid = pid, .fd = fd, .name = name};
    return &sinks[sink_count++];
}

// Opens a process's log file; NULL after a message.
static struct sink *open_file(int pid) {
    char *error = NULL;
    char *name = template_expand(settings.place, pid, 1, &error);
    if (!name) {
        log_complain("--log-file=%s: %s", settings.place, error);
        free(error);
        return NULL;
    }
    int fd = fd_move_high(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0) {
        log_complain("cannot write log file '%s': %s", name, strerror(errno));
        free(name);
        return NULL;
    }
    return add_sink(pid, fd, name);
}

int log_connect(const char *place) {
    char host[64];
    const char *colon = strrchr(place, ':');
    size_t size = colon ? (size_t)(colon - place) : strlen(place);
    if (size >= sizeof host)
        return -1;
    memcpy(host, place, size);
    host[size] = 0;
    long port = colon ? strtol(colon + 1, NULL, 10) : DEFAULT_LOG_PORT;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (port <= 0 || port > 65535 || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return -1;
    int fd = fd_move_high(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool log_open(const struct log_settings *wanted, int pid) {
    settings = *wanted;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (settings.kind == LOG_TO_FILE)
        return open_file(pid) != NULL;
    if (settings.kind == LOG_TO_SOCKET) {
        int fd = log_connect(settings.place);
        if (fd >= 0)
            return add_sink(pid, fd, base_copy(settings.place)) != NULL;
        log_complain("cannot reach a log listener at %s; the log goes to stderr", settings.place);
        settings.kind = LOG_TO_FD;
        settings.fd = 2;
    }
    // A copy, so that nothing the run opens or closes later can take the log's place.
    int fd = fcntl(settings.fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 && settings.fd != 2) {
        log_complain("--log-fd=%d: %s; open it first, as in %d>FILE", settings.fd, strerror(errno),
                     settings.fd);
        return false;
    }
    add_sink(pid, fd_move_high(fd), base_copy("the log"));
    return true;
}

static struct sink *sink_of(int pid) {
    if (settings.kind != LOG_TO_FILE || !template_has_pid(settings.place))
        return sinks;
    for (size_t i = 0; i < sink_count; i++)
        if (sinks[i].pid == pid)
            return &sinks[i];
    struct sink *sink = open_file(pid);
    return sink ? sink : sinks;
}

void log_add_process(int pid) {
    sink_of(pid);
}

void log_drop_process(int pid) {
    // The first sink is the main process's and serves whoever has none.
    for (size_t i = 1; i < sink_count; i++) {
        if (sinks[i].pid != pid)
            continue;
        close(sinks[i].fd);
        free(sinks[i].name);
        sinks[i] = sinks[--sink_count];
        return;
    }
}

void log_close(void) {
    for (size_t i = 0; i < sink_count; i++) {
        close(sinks[i].fd);
        free(sinks[i].name);
    }
    free(sinks);
    sinks = NULL;
    sink_count = 0;
}

bool log_shows(int level) {
    return level <= settings.verbosity;
}

bool log_is_apart(void) {
    return settings.kind != LOG_TO_FD;
}

bool log_is_terminal(void) {
    return settings.kind == LOG_TO_FD && isatty(settings.fd);
}

uint64_t log_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}

static void add_prefix(struct text *out, int pid, enum log_mark mark) {
    text_format(out, "%c%c", mark, mark);
    if (settings.time_stamp) {
        long ms = (long)log_milliseconds();
        long s = ms / 1000;
        text_format(out, "%02ld:%02ld:%02ld:%02ld.%03ld ", s / 86400, s / 3600 % 24, s / 60 % 60,
                    s % 60, ms % 1000);
    }
    text_format(out, "%d%c%c ", pid, mark, mark);
}

static void put(struct sink *sink, const struct text *lines) {
    int error = fd_write_all(sink->fd, lines->bytes, lines->size);
    if (!error || sink->broken)
        return;
    sink->broken = true;
    if (error != EBADF && settings.kind != LOG_TO_FD)
        log_complain("cannot write to '%s': %s; the log is incomplete; the run continues",
                     sink->name, strerror(error));
}

void log_print(int pid, enum log_mark mark, const char *text) {
    struct text out = {0};
    do {
        const char *end = strchrnul(text, '\n');
        add_prefix(&out, pid, mark);
        text_add(&out, text, (size_t)(end - text));
        text_char(&out, '\n');
        text = *end ? end + 1 : end;
    } while (*text);
    put(sink_of(pid), &out);
    text_free(&out);
}

void log_raw(int pid, const char *text) {
    struct text out = {0};
    text_string(&out, text);
    put(sink_of(pid), &out);
    text_free(&out);
}

void log_prompt(int pid, const char *text) {
    struct text out = {0};
    add_prefix(&out, pid, LOG_USER);
    text_string(&out, text);
    put(sink_of(pid), &out);
    text_free(&out);
}

void log_format(int pid, enum log_mark mark, const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    log_print(pid, mark, text.bytes ? text.bytes : "");
    text_free(&text);
}
