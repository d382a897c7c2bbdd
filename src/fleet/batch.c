#include "fleet/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "report/shared/stack_text.h"

#define MAGIC     "quern interval 1"
#define FILE_MOST (1ull << 30)

// ---- values ------------------------------------------------------------------------------------

// Values end with a tab; the one behind the last becomes the end of the line.
void batch_number(struct text *rows, uint64_t value) {
    text_format(rows, "%lld\t", (long long)value);
}

void batch_real(struct text *rows, double value) {
    text_format(rows, "%.3f\t", value);
}

void batch_time(struct text *rows, time_t time) {
    struct tm parts;
    char text[32];
    gmtime_r(&time, &parts);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    text_format(rows, "%s\t", text);
}

void batch_text(struct text *rows, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t length = stack_text_printable(at);
        if (!length)
            text_format(rows, "\\\\x%02X", *at);
        else if (*at == '\\')
            text_string(rows, "\\\\");
        else
            text_add(rows, (const char *)at, length);
        at += length ? length : 1;
    }
    text_char(rows, '\t');
}

void batch_end_row(struct text *rows) {
    rows->bytes[rows->size - 1] = '\n';
}

void batch_free(struct batch *batch) {
    for (size_t i = 0; i < TABLES; i++)
        text_free(&batch->rows[i]);
    free(batch->service);
    *batch = (struct batch){0};
}

// ---- the file ----------------------------------------------------------------------------------

int batch_write(const struct batch *batch, int folder, const char *name) {
    struct text all = {0}, unfinished = {0};
    text_format(&all, MAGIC " %llu %u %lld %s\n", (unsigned long long)batch->process, batch->number,
                (long long)batch->time, batch->service);
    for (size_t i = 0; i < TABLES; i++) {
        text_format(&all, "%s %zu\n", table_infos[i].name, batch->rows[i].size);
        text_add(&all, batch->rows[i].bytes ? batch->rows[i].bytes : "", batch->rows[i].size);
    }
    text_format(&unfinished, "%s.part", name);
    int fd = openat(folder, unfinished.bytes, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : fd_write_all(fd, all.bytes, all.size);
    if (fd >= 0 && close(fd) != 0 && !error)
        error = errno;
    if (!error && renameat(folder, unfinished.bytes, folder, name) != 0)
        error = errno;
    if (error)
        unlinkat(folder, unfinished.bytes, 0);
    text_free(&all);
    text_free(&unfinished);
    return error;
}

// The rest of the line, to be ended by a NUL; NULL: there is no whole line.
static char *next_line(char **at, const char *end) {
    char *line = *at, *feed = memchr(line, '\n', (size_t)(end - line));
    if (!feed)
        return NULL;
    *feed = 0;
    *at = feed + 1;
    return line;
}

static bool parse(struct batch *batch, char *at, const char *end) {
    unsigned long long process;
    long long time;
    int service = 0;
    char *line = next_line(&at, end);
    if (!line ||
        sscanf(line, MAGIC " %llu %u %lld %n", &process, &batch->number, &time, &service) != 3 ||
        !service)
        return false;
    batch->process = process;
    batch->time = (time_t)time;
    batch->service = base_copy(line + service);
    for (size_t i = 0; i < TABLES; i++) {
        size_t name = strlen(table_infos[i].name), size;
        line = next_line(&at, end);
        if (!line || strncmp(line, table_infos[i].name, name) != 0 ||
            sscanf(line + name, " %zu", &size) != 1 || size > (size_t)(end - at))
            return false;
        text_add(&batch->rows[i], at, size);
        at += size;
    }
    return at == end;
}

bool batch_read(struct batch *batch, int folder, const char *name) {
    struct stat status;
    *batch = (struct batch){0};
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_fine =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size < FILE_MOST;
    size_t size = is_fine ? (size_t)status.st_size : 0;
    char *bytes = base_allocate(size + 1);
    is_fine =
        is_fine && read(fd, bytes, size) == (ssize_t)size && parse(batch, bytes, bytes + size);
    close(fd);
    free(bytes);
    if (!is_fine) {
        batch_free(batch);
        errno = EINVAL;
    }
    return is_fine;
}
