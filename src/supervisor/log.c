#include "supervisor/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/template.h"
#include "base/text.h"
#include "base/vector.h"
#include "supervisor/log_paint.h"
#include "wire/wire_supervisor.h"

#define DEFAULT_LOG_PORT 1500

// A place lines go to. With %p in the file's name there is one per process, else one in all.
struct sink {
    int pid;
    int fd;
    bool broken; // said so on stderr already
    char *name;
};

struct log {
    struct log_settings settings;
    struct sink *sinks; // the first is the main process's and serves whoever has none
    size_t sink_count;
    struct paint paint; // for a terminal; plain elsewhere
    int64_t start;      // milliseconds
    bool has_failed;    // to write a profile
    int diverted_pid;
    struct text *diverted; // NULL: no lines are
};

struct log *log_new(const struct log_settings *settings) {
    struct log *log = base_allocate(sizeof *log);
    log->settings = *settings;
    return log;
}

void log_free(struct log *log) {
    log_close(log);
    free(log);
}

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

void log_cannot_write(struct log *log, const char *path, const char *reason) {
    log->has_failed = true;
    log_complain("cannot write '%s': %s", path, reason);
}

bool log_has_failed(const struct log *log) {
    return log->has_failed;
}

static struct sink *add_sink(struct log *log, int pid, int fd, char *name) {
    struct sink *sink = vector_push(log->sinks, log->sink_count);
    *sink = (struct sink){.pid = pid, .fd = fd, .name = name};
    return sink;
}

// Opens a process's log file; NULL after a message.
static struct sink *open_file(struct log *log, int pid) {
    char *error = NULL;
    char *name = template_expand(log->settings.place, pid, 1, &error);
    if (!name) {
        log_complain("--log-file=%s: %s", log->settings.place, error);
        free(error);
        return NULL;
    }
    int fd = fd_move_high(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0) {
        log_complain("cannot write log file '%s': %s", name, strerror(errno));
        free(name);
        return NULL;
    }
    return add_sink(log, pid, fd, name);
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

bool log_open(struct log *log, int pid) {
    log->start = clock_milliseconds();
    if (log->settings.kind == LOG_TO_FILE)
        return open_file(log, pid) != NULL;
    if (log->settings.kind == LOG_TO_SOCKET) {
        int fd = log_connect(log->settings.place);
        if (fd >= 0)
            return add_sink(log, pid, fd, base_copy(log->settings.place)) != NULL;
        log_complain("cannot reach a log listener at %s; the log goes to stderr",
                     log->settings.place);
        log->settings.kind = LOG_TO_FD;
        log->settings.fd = 2;
    }
    // A copy, so that nothing the run opens or closes later can take the log's place.
    bool is_nowhere = log->settings.fd == -1;
    int fd = is_nowhere ? open("/dev/null", O_WRONLY | O_CLOEXEC)
                        : fcntl(log->settings.fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0 && log->settings.fd != 2) {
        log_complain("--log-fd=%d: %s; open it first, as in %d>FILE", log->settings.fd,
                     strerror(errno), log->settings.fd);
        return false;
    }
    add_sink(log, pid, fd_move_high(fd), base_copy("the log"));
    paint_choose(&log->paint, PAINT_AUTO, log->settings.fd);
    return true;
}

static struct sink *sink_of(struct log *log, int pid) {
    if (log->settings.kind != LOG_TO_FILE || !template_has_pid(log->settings.place))
        return log->sinks;
    for (size_t i = 0; i < log->sink_count; i++)
        if (log->sinks[i].pid == pid)
            return &log->sinks[i];
    struct sink *sink = open_file(log, pid);
    return sink ? sink : log->sinks;
}

void log_add_process(struct log *log, int pid) {
    sink_of(log, pid);
}

void log_drop_process(struct log *log, int pid) {
    for (size_t i = 1; i < log->sink_count; i++) {
        if (log->sinks[i].pid != pid)
            continue;
        close(log->sinks[i].fd);
        free(log->sinks[i].name);
        log->sinks[i] = log->sinks[--log->sink_count];
        return;
    }
}

void log_close(struct log *log) {
    for (size_t i = 0; i < log->sink_count; i++) {
        close(log->sinks[i].fd);
        free(log->sinks[i].name);
    }
    free(log->sinks);
    log->sinks = NULL;
    log->sink_count = 0;
}

bool log_shows(const struct log *log, int level) {
    return level <= log->settings.verbosity;
}

bool log_is_apart(const struct log *log) {
    return log->settings.kind != LOG_TO_FD;
}

bool log_is_terminal(const struct log *log) {
    return log->settings.kind == LOG_TO_FD && isatty(log->settings.fd);
}

int log_descriptor(const struct log *log) {
    return log->sink_count ? log->sinks[0].fd : -1;
}

uint64_t log_milliseconds(const struct log *log) {
    return (uint64_t)(clock_milliseconds() - log->start);
}

static void add_prefix(const struct log *log, struct text *out, int pid, enum log_mark mark) {
    text_format(out, "%c%c", mark, mark);
    if (log->settings.time_stamp) {
        long ms = (long)log_milliseconds(log);
        long s = ms / 1000;
        text_format(out, "%02ld:%02ld:%02ld:%02ld.%03ld ", s / 86400, s / 3600 % 24, s / 60 % 60,
                    s % 60, ms % 1000);
    }
    text_format(out, "%d%c%c ", pid, mark, mark);
}

void log_divert(struct log *log, int pid, struct text *to) {
    log->diverted_pid = pid;
    log->diverted = to;
}

static bool is_diverted(const struct log *log, int pid) {
    return log->diverted && pid == log->diverted_pid;
}

static void put(struct log *log, int pid, const struct text *lines) {
    if (is_diverted(log, pid)) {
        text_add(log->diverted, lines->bytes, lines->size);
        return;
    }
    struct sink *sink = sink_of(log, pid);
    int error = wire_board_write(sink->fd, lines->bytes, lines->size);
    if (!error || sink->broken)
        return;
    sink->broken = true;
    if (error != EBADF && log->settings.kind != LOG_TO_FD)
        log_complain("cannot write to '%s': %s; the log is incomplete; the run continues",
                     sink->name, strerror(error));
}

// The prefix of a line, and the line. `next` is the text behind it.
static void add_line(const struct log *log, struct text *out, int pid, enum log_mark mark,
                     const char *line, size_t size, const char *next) {
    bool is_painted = log->paint.colour && !is_diverted(log, pid);
    size_t start = out->size;
    add_prefix(log, out, pid, mark);
    if (!is_painted) {
        text_add(out, line, size);
        return;
    }
    struct text prefix = {0};
    text_add(&prefix, out->bytes + start, out->size - start);
    out->size = start;
    log_paint(out, &log->paint, PAINT_FAINT, prefix.bytes, prefix.size);
    log_paint_line(out, &log->paint, line, size, next);
    text_free(&prefix);
}

void log_print(struct log *log, int pid, enum log_mark mark, const char *text) {
    struct text out = {0};
    do {
        const char *end = strchrnul(text, '\n');
        const char *next = *end ? end + 1 : end;
        add_line(log, &out, pid, mark, text, (size_t)(end - text), next);
        text_char(&out, '\n');
        text = next;
    } while (*text);
    put(log, pid, &out);
    text_free(&out);
}

void log_raw(struct log *log, int pid, const char *text) {
    struct text out = {0};
    text_string(&out, text);
    put(log, pid, &out);
    text_free(&out);
}

void log_prompt(struct log *log, int pid, const char *text) {
    struct text out = {0};
    add_prefix(log, &out, pid, LOG_USER);
    text_string(&out, text);
    put(log, pid, &out);
    text_free(&out);
}

void log_format(struct log *log, int pid, enum log_mark mark, const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    log_print(log, pid, mark, text.bytes ? text.bytes : "");
    text_free(&text);
}
